package compare

import (
	"fmt"
	"slices"
	"strings"
)

// Unmatched is stages that only one side ran: they are in no mean.
type Unmatched struct {
	Stage string `json:"stage"`
	Side  string `json:"side"`  // base or new
	Spans int    `json:"spans"` // of its runs, by job and partition, without a counterpart everywhere
	// MeanNS is their mean time, and Only says that the other side has none of that stage.
	MeanNS float64 `json:"mean_ns"`
	Only   bool    `json:"only"`
}

// align pairs the stages of all runs by job order, partition and stage, and makes each run's stage
// times the means over what all of them have. Runs of one shape keep their plain means.
func align(base, next []*Run) (unmatched []Unmatched, warnings []string) {
	runs := slices.Concat(base, next)
	for _, r := range runs {
		if r.stages.dropped {
			return nil, []string{fmt.Sprintf("%s has more than %d stages of partitions: stage "+
				"times are means over each run's own", r.Name, maxStageEntries)}
		}
	}
	if sameShape(runs) {
		return nil, nil
	}
	names := map[string]bool{}
	for _, r := range runs {
		for _, name := range r.stages.names {
			names[name] = true
		}
	}
	for name := range names {
		unmatched = append(unmatched, alignStage(base, next, name)...)
	}
	slices.SortFunc(unmatched, func(a, b Unmatched) int {
		if c := strings.Compare(a.Stage, b.Stage); c != 0 {
			return c
		}
		return strings.Compare(a.Side, b.Side)
	})
	return unmatched, nil
}

// sameShape says that all runs have equal keys: the usual case.
func sameShape(runs []*Run) bool {
	first := runs[0].stages
	for _, r := range runs[1:] {
		t := r.stages
		if len(t.entries) != len(first.entries) || !slices.Equal(t.names, first.names) {
			return false
		}
		for i := range t.entries {
			if t.entries[i].key != first.entries[i].key {
				return false
			}
		}
	}
	return true
}

// alignStage keeps of one stage what every run has.
func alignStage(base, next []*Run, name string) (unmatched []Unmatched) {
	runs := slices.Concat(base, next)
	common := runs[0].stages.of(name)
	for _, r := range runs[1:] {
		common = intersect(common, r.stages.of(name))
	}
	for side, list := range [][]*Run{base, next} {
		var extra meanOf
		for _, r := range list {
			own := r.stages.of(name)
			extra.sum += sumOf(own) - sumOf(intersect(own, common))
			extra.count += int64(len(own) - len(common))
		}
		if extra.count > 0 {
			unmatched = append(unmatched, Unmatched{
				Stage: name, Side: []string{"base", "new"}[side], Spans: int(extra.count),
				MeanNS: extra.sum / float64(extra.count),
				Only:   !anyHas([][]*Run{next, base}[side], name),
			})
		}
	}
	for _, r := range runs {
		m := Metric{StageTime, name}
		if len(common) == 0 {
			delete(r.Values, m)
			continue
		}
		r.Values[m] = meanOver(r.stages.of(name), common)
	}
	return unmatched
}

// of is the run's entries of one stage, by job and partition.
func (t *stageTable) of(name string) []stageEntry {
	at, ok := slices.BinarySearch(t.names, name)
	if !ok {
		return nil
	}
	stage := uint16(at)
	begin, _ := slices.BinarySearchFunc(t.entries, stage,
		func(e stageEntry, s uint16) int { return int(e.key.stage) - int(s) })
	end := begin
	for end < len(t.entries) && t.entries[end].key.stage == stage {
		end++
	}
	return t.entries[begin:end]
}

// place is a key without its stage, whose number differs between runs.
func (e stageEntry) place() [2]int32 { return [2]int32{e.key.job, e.key.partition} }

// intersect is the entries of a whose places b has too. Both are sorted.
func intersect(a, b []stageEntry) []stageEntry {
	var both []stageEntry
	j := 0
	for _, e := range a {
		for j < len(b) && before(b[j], e) {
			j++
		}
		if j < len(b) && b[j].place() == e.place() {
			both = append(both, e)
		}
	}
	return both
}

func before(a, b stageEntry) bool {
	return a.key.job < b.key.job || a.key.job == b.key.job && a.key.partition < b.key.partition
}

func anyHas(runs []*Run, stage string) bool {
	return slices.ContainsFunc(runs, func(r *Run) bool { return len(r.stages.of(stage)) > 0 })
}

func sumOf(list []stageEntry) (ns float64) {
	for _, e := range list {
		ns += float64(e.ns)
	}
	return ns
}

func meanOver(own, common []stageEntry) float64 {
	both := intersect(own, common)
	return sumOf(both) / float64(len(both))
}
