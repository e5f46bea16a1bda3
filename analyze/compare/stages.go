package compare

import (
	"cmp"
	"slices"
	"strings"

	"highwater/tracer/trace"
)

// stageObserver gathers the durations of stages by job, partition and stage, and of operations,
// kernels and copies by name.
type stageObserver struct {
	jobs  jobOrder
	table stageTable
	index map[string]uint16
	cpu   map[string]*meanOf
	ops   map[opKey]*opSum
}

// stageTable is the durations of one run, by key in rising order.
type stageTable struct {
	names   []string
	entries []stageEntry
	dropped bool // there were too many partitions to keep apart
	sums    map[string]*meanOf
}

type stageEntry struct {
	key stageKey
	ns  int64
}

// stageKey is (job's rank, partition, stage).
type stageKey struct {
	job       int32
	partition int32
	stage     uint16
}

func (a stageKey) compare(b stageKey) int {
	return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(a.job, b.job),
		cmp.Compare(a.partition, b.partition))
}

type meanOf struct {
	sum   float64
	count int64
}

type opKey struct{ metric, name string }

type opSum struct{ ns, bytes float64 }

const (
	maxStageEntries = 4 << 20 // of one run: 96 MB
	maxStages       = 1 << 10
	maxOps          = 256 // names of operations, kernels and copies that are told apart
	maxRank         = 1<<31 - 1
)

func newStageObserver(jobs jobOrder) *stageObserver {
	return &stageObserver{
		jobs: jobs, index: map[string]uint16{}, cpu: map[string]*meanOf{},
		ops: map[opKey]*opSum{}, table: stageTable{sums: map[string]*meanOf{}},
	}
}

// startJobs forgets what ended in set-up.
func (o *stageObserver) startJobs() {
	*o = *newStageObserver(o.jobs)
}

// end takes a span that ended. One that began before the phase is set-up's.
func (o *stageObserver) end(s *trace.Span, phaseNS int64) {
	if s.BeginNS < phaseNS || s.Status == "error" {
		return
	}
	ns := s.EndNS - s.BeginNS
	switch s.Kind {
	case trace.KindStage:
		o.stage(s, ns)
	case trace.KindOp:
		o.op(OpTime, s, ns)
	case trace.KindKernel:
		o.op(KernelTime, s, ns)
	case trace.KindCopy:
		o.op(CopyTime, s, ns)
	}
}

func (o *stageObserver) stage(s *trace.Span, ns int64) {
	i, ok := o.index[s.Stage]
	if !ok {
		if len(o.index) >= maxStages {
			return
		}
		i = uint16(len(o.index))
		name := strings.Clone(s.Stage)
		o.index[name] = i
		o.table.names = append(o.table.names, name)
		o.table.sums[name] = &meanOf{}
		o.cpu[name] = &meanOf{}
	}
	name := o.table.names[i]
	o.table.sums[name].add(float64(ns))
	if s.CPUNS != trace.Null {
		o.cpu[name].add(float64(s.CPUNS))
	}
	rank := o.jobs.rank(s.Job)
	if o.table.dropped || rank > maxRank || s.Partition > maxRank {
		return
	}
	o.table.entries = append(o.table.entries,
		stageEntry{stageKey{int32(rank), int32(s.Partition), i}, ns})
	if len(o.table.entries) > maxStageEntries {
		o.table.entries, o.table.dropped = nil, true
	}
}

func (m *meanOf) add(v float64) {
	m.sum += v
	m.count++
}

func (o *stageObserver) op(metric string, s *trace.Span, ns int64) {
	k := opKey{metric, s.Name}
	x := o.ops[k]
	if x == nil {
		if len(o.ops) >= maxOps {
			return
		}
		k.name = strings.Clone(s.Name)
		x = &opSum{}
		o.ops[k] = x
	}
	x.ns += float64(ns)
	if s.Bytes != trace.Null {
		x.bytes += float64(s.Bytes)
	}
}

func (o *stageObserver) finish(r *Run) {
	o.table.sort()
	r.stages = &o.table
	for name, m := range o.table.sums {
		r.Values.set(StageTime, name, m.sum/float64(m.count))
	}
	for name, m := range o.cpu {
		if m.count > 0 {
			r.Values.set(StageCPU, name, m.sum/float64(m.count))
		}
	}
	for k, x := range o.ops {
		r.Values.set(k.metric, k.name, x.ns)
		if k.metric == CopyTime && x.bytes > 0 {
			r.Values.set(CopyBytes, k.name, x.bytes)
		}
	}
}

// sort orders the entries, stages by name, and merges those of one key: a stage that ran twice for
// a partition took the sum.
func (t *stageTable) sort() {
	byName := slices.Clone(t.names)
	slices.Sort(byName)
	place := make([]uint16, len(t.names))
	for i, name := range t.names {
		at, _ := slices.BinarySearch(byName, name)
		place[i] = uint16(at)
	}
	for i := range t.entries {
		t.entries[i].key.stage = place[t.entries[i].key.stage]
	}
	t.names = byName
	slices.SortFunc(t.entries, func(a, b stageEntry) int { return a.key.compare(b.key) })
	merged := t.entries[:0]
	for _, e := range t.entries {
		if n := len(merged); n > 0 && merged[n-1].key == e.key {
			merged[n-1].ns += e.ns
			continue
		}
		merged = append(merged, e)
	}
	t.entries = merged
}
