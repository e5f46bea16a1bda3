package compare

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"highwater/analyze/memory"
	"highwater/tracer/trace"
)

// peakMakeup is what held the live bytes of one space at their peak, by owner and class, beside how
// many buffers of the class the owner ever had.
type peakMakeup struct {
	live  int64
	cells map[cellKey]cell
	// bytes by class and the stage that allocated them or was handed them
	stages map[[2]string]int64
	whole  bool // owners could not be told apart: all cells are everyone's
}

type cellKey struct {
	owner ownerKey
	class string
}

type cell struct{ bytes, buffers, made int64 }

func makeupOf(l *memory.Ledger, t *memory.Tally, classes *classObserver) peakMakeup {
	p := peakMakeup{
		live: t.Peak.LiveBytes, cells: map[cellKey]cell{}, stages: map[[2]string]int64{},
		whole: classes.made.full,
	}
	l.AtPeak(t, func(x memory.OwnedAtPeak) {
		k := cellKey{ownerKey{classes.jobs.rank(x.Job), x.Partition}, x.Class}
		if p.whole {
			k.owner = everyone
		}
		c := p.cells[k]
		c.bytes += x.Bytes
		c.buffers += x.Buffers
		p.cells[k] = c
		p.stages[[2]string{x.Class, x.Stage}] += x.Bytes
	})
	for k, n := range classes.made.byKey {
		key := cellKey{k.owner, classes.order[k.class].class}
		c := p.cells[key]
		c.made += int64(n)
		p.cells[key] = c
	}
	return p
}

// merged adds the cells of all owners up.
func (p peakMakeup) merged() peakMakeup {
	if p.whole {
		return p
	}
	m := peakMakeup{live: p.live, cells: map[cellKey]cell{}, stages: p.stages, whole: true}
	for k, c := range p.cells {
		k.owner = everyone
		s := m.cells[k]
		s.bytes, s.buffers, s.made = s.bytes+c.bytes, s.buffers+c.buffers, s.made+c.made
		m.cells[k] = s
	}
	return m
}

// PeakSplit explains the difference of two peaks of live bytes by class. Every byte of the
// difference is in exactly one term: the terms of all classes and Unattributed add up to Delta.
type PeakSplit struct {
	Space        string      `json:"space"` // host, or device/N
	BaseRun      string      `json:"base_run"`
	NewRun       string      `json:"new_run"`
	BaseBytes    int64       `json:"base_bytes"`
	NewBytes     int64       `json:"new_bytes"`
	DeltaBytes   int64       `json:"delta_bytes"`
	Classes      []ClassTerm `json:"classes"` // the largest change first
	Unattributed int64       `json:"unattributed_bytes"`
}

// ClassTerm is what one class adds to the difference of two peaks.
//
//   - count: buffers that the partition has more of in one run than in the other.
//   - lifetime: buffers that both runs have, of which more (or fewer) were alive at the peak,
//     because they live longer or at the same time as more others.
//   - size: buffers alive at both peaks that are larger or smaller.
type ClassTerm struct {
	Class         string `json:"class"`
	Stage         string `json:"stage"` // the stage with most of its change; "" where none is known
	BaseBuffers   int64  `json:"base_buffers"`
	NewBuffers    int64  `json:"new_buffers"`
	BaseBytes     int64  `json:"base_bytes"`
	NewBytes      int64  `json:"new_bytes"`
	DeltaBytes    int64  `json:"delta_bytes"`
	CountBytes    int64  `json:"count_bytes"`
	SizeBytes     int64  `json:"size_bytes"`
	LifetimeBytes int64  `json:"lifetime_bytes"`
}

// splitPeaks splits the difference of two peaks.
func splitPeaks(base, next peakMakeup) PeakSplit {
	if base.whole || next.whole {
		base, next = base.merged(), next.merged()
	}
	s := PeakSplit{
		BaseBytes: base.live, NewBytes: next.live, DeltaBytes: next.live - base.live,
		Classes: []ClassTerm{},
	}
	keys := map[cellKey]bool{}
	for k := range base.cells {
		keys[k] = true
	}
	for k := range next.cells {
		keys[k] = true
	}
	terms := map[string]*ClassTerm{}
	s.Unattributed = s.DeltaBytes
	for k := range keys {
		t := terms[k.class]
		if t == nil {
			t = &ClassTerm{Class: k.class}
			terms[k.class] = t
		}
		t.add(base.cells[k], next.cells[k])
		s.Unattributed -= next.cells[k].bytes - base.cells[k].bytes
	}
	for _, t := range terms {
		t.Stage = movedStage(base.stages, next.stages, t.Class)
		if t.BaseBytes != 0 || t.NewBytes != 0 {
			s.Classes = append(s.Classes, *t)
		}
	}
	slices.SortFunc(s.Classes, func(a, b ClassTerm) int {
		return cmp.Or(cmp.Compare(abs(b.DeltaBytes), abs(a.DeltaBytes)),
			cmp.Compare(b.NewBytes, a.NewBytes), cmp.Compare(a.Class, b.Class))
	})
	return s
}

// add splits one cell. Buffers alive at both peaks differ by size; of the others as many as were
// made more (or fewer) are count, the rest lifetime. Each is valued at the mean size of the side
// that has it; what rounding leaves goes to the last term that there is.
func (t *ClassTerm) add(base, next cell) {
	delta := next.bytes - base.bytes
	t.BaseBuffers, t.NewBuffers = t.BaseBuffers+base.buffers, t.NewBuffers+next.buffers
	t.BaseBytes, t.NewBytes = t.BaseBytes+base.bytes, t.NewBytes+next.bytes
	t.DeltaBytes += delta

	extra, more := next.buffers-base.buffers, next.made-base.made
	value := next
	if extra < 0 {
		value = base
	}
	counted := int64(0)
	if extra > 0 && more > 0 {
		counted = min(extra, more)
	}
	if extra < 0 && more < 0 {
		counted = max(extra, more)
	}
	count, lifetime := value.worth(counted), value.worth(extra-counted)
	size := delta - count - lifetime
	if min(base.buffers, next.buffers) <= 0 { // no pair whose size could differ
		switch {
		case extra != counted:
			lifetime += size
		default:
			count += size
		}
		size = 0
	}
	t.CountBytes += count
	t.SizeBytes += size
	t.LifetimeBytes += lifetime
}

// movedStage is the stage whose bytes of the class differ most between two peaks.
func movedStage(base, next map[[2]string]int64, class string) (stage string) {
	most := int64(0)
	for _, side := range []map[[2]string]int64{base, next} {
		for k := range side {
			moved := abs(next[k] - base[k])
			if k[0] == class && (moved > most || moved == most && moved > 0 && k[1] < stage) {
				stage, most = k[1], moved
			}
		}
	}
	return stage
}

// worth is what n of the cell's buffers hold.
func (c cell) worth(n int64) int64 {
	if c.buffers == 0 || n == 0 {
		return 0
	}
	return int64(math.Round(float64(c.bytes) / float64(c.buffers) * float64(n)))
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

// deviceName is a device as PeakSplit.Space shows it.
func deviceName(device int64) string {
	if device == trace.None {
		return "host"
	}
	return "device/" + strconv.FormatInt(device, 10)
}
