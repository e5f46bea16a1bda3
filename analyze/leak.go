package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/trace"
)

// leak tells memory that grows with every completed job from memory that a program takes once.
//
//  1. What jobs that have ended, or nobody, hold is settled: by class and the stage that allocated
//     it. It is read as a floor, the least between one job's end and the next, so that frees that
//     come a little after the end do not count.
//  2. The first quarter of the jobs is warm-up.
//  3. Growth needs Mann and Kendall's trend test beyond min_z, and min_growth_ratio of the peak.
//  4. Growth that has flattened (its last third below max_tail_ratio of its first third) is a
//     plateau. Growth that came when demand set a new record (what the jobs under way held) is
//     high-water pooling. Only the rest is a leak.
type leak struct{}

const leakName = "leak"

// Doc implements Analyzer.
func (leak) Doc() Doc {
	return Doc{
		Name: leakName,
		Summary: "Memory that no job under way holds grows with every job that completes: it is " +
			"never freed.",
		RefutedBy: "A longer run in which the growth ends (a cache that fills up, a pool that " +
			"reaches its size); or frees of these buffers that were not recorded: then RSS " +
			"does not grow along.",
		Remedy: "Free the named class where the named stage's work ends, on failure paths too; " +
			"bound it if it is a cache.",
		Thresholds: []Threshold{
			{
				Name: leakName + ".min_jobs", Default: 8,
				Meaning: "completed jobs, at the least",
				Source:  "with six left after warm-up the trend test can reach z = 2.6",
			},
			{
				Name: leakName + ".min_z", Default: 2.5,
				Meaning: "Mann and Kendall's z of the floors after warm-up",
				Source:  "one-sided p = 0.006: chance gives one in 160 without a trend",
			},
			{
				Name: leakName + ".min_growth_ratio", Default: 0.01,
				Meaning: "growth after warm-up, as a share of the live peak",
				Source:  "less is bookkeeping: it takes a hundred such runs to double the peak",
			},
			{
				Name: leakName + ".max_tail_ratio", Default: 0.25,
				Meaning: "growth in the last third over growth in the first, up to which it is a " +
					"plateau",
				Source: "reasoned: true growth gives 1, saturation within the run near 0",
			},
			{
				Name: leakName + ".max_pool_ratio", Default: 0.75,
				Meaning: "share of the growth that came with a record of demand, from which it is " +
					"pooling",
				Source: "reasoned: a leak grows whatever the demand",
			},
		},
	}
}

// Start implements Analyzer.
func (leak) Start(in *Input) Pass {
	return &leakPass{
		in: in, jobs: map[int64]*leakJob{}, byKey: map[leakKey]*leakCell{},
		resources: jobResources(&in.Trace.Manifest),
	}
}

type leakPass struct {
	in        *Input
	resources map[string]bool
	jobs      map[int64]*leakJob
	byKey     map[leakKey]*leakCell
	cells     []*leakCell
	completed int
	began     bool // the first job was requested

	live, settled int64 // host bytes, top level
	demandNow     int64 // highest live less settled since the last job's end
	demand        []int64
	stride        int // job ends for each floor kept
	sinceKept     int
}

// leakKey is where settled bytes came from.
type leakKey struct{ class, stage string }

// leakCell is the settled bytes of one origin, and their floors by completed job.
type leakCell struct {
	leakKey
	bytes, buffers int64
	floor          int64
	floors         []int64 // one a kept job; cells that came later begin with zeros
	examples       []int64
}

// leakJob is one job's live buffers by origin, until it has ended.
type leakJob struct {
	ended bool
	held  map[*leakCell]leakAmount
}

type leakAmount struct {
	bytes, buffers int64
}

// leakNote is what the pass keeps of a live buffer, in the buffer.
type leakNote struct {
	job  int64
	cell *leakCell
}

// maxFloors bounds the floors of a cell: past it, each pair becomes its lower one.
const maxFloors = 1 << 11

func (*leakPass) wants() memory.Kinds {
	return memory.KindsOf(memory.StepBuffer, memory.StepQueue)
}

// Observe implements memory.Observer.
func (p *leakPass) Observe(s *memory.Step) {
	if s.Kind == memory.StepQueue {
		p.queue(s.Queue)
		return
	}
	p.buffer(s.Buffer)
	p.demandNow = max(p.demandNow, p.live-p.settled)
}

func (p *leakPass) queue(e *trace.QueueEvent) {
	if !p.resources[e.Resource] || e.Job < 0 {
		return
	}
	switch e.Event {
	case trace.EventRequest:
		p.start()
	case trace.EventRelease, trace.EventCancel:
		p.end(e.Job)
	}
}

// start begins the job phase: demand counts from here.
func (p *leakPass) start() {
	if !p.began {
		p.began, p.demandNow = true, p.live-p.settled
	}
}

// end settles what the job still holds and keeps the floors of the time since the last end.
func (p *leakPass) end(id int64) {
	j := p.job(id)
	if j.ended {
		return
	}
	j.ended = true
	p.completed++
	p.keep()
	for c, a := range j.held {
		p.settle(c, a.bytes, a.buffers)
	}
	j.held = nil
	for _, c := range p.cells {
		c.floor = c.bytes
	}
	p.demandNow = p.live - p.settled
}

// keep stores the floors and the demand since the last job's end.
func (p *leakPass) keep() {
	if p.sinceKept++; p.sinceKept < max(1, p.stride) {
		return
	}
	p.sinceKept = 0
	for _, c := range p.cells {
		c.floors = append(c.floors, c.floor)
	}
	p.demand = append(p.demand, p.demandNow)
	if len(p.demand) < maxFloors {
		return
	}
	p.stride = 2 * max(1, p.stride)
	halve(&p.demand, higher)
	for _, c := range p.cells {
		halve(&c.floors, lower)
	}
}

func lower(a, b int64) int64  { return min(a, b) }
func higher(a, b int64) int64 { return max(a, b) }

// halve makes one value of each two.
func halve(v *[]int64, join func(a, b int64) int64) {
	n := len(*v) / 2
	for i := range n {
		(*v)[i] = join((*v)[2*i], (*v)[2*i+1])
	}
	*v = (*v)[:n]
}

func (p *leakPass) job(id int64) *leakJob {
	j := p.jobs[id]
	if j == nil {
		j = &leakJob{held: map[*leakCell]leakAmount{}, ended: id < 0}
		p.jobs[id] = j
	}
	return j
}

// settle adds to what nobody under way holds.
func (p *leakPass) settle(c *leakCell, bytes, buffers int64) {
	c.bytes += bytes
	c.buffers += buffers
	c.floor = min(c.floor, c.bytes)
	p.settled += bytes
}

// move adds to what a job holds in a cell: settled if it has ended.
func (p *leakPass) move(n *leakNote, bytes, buffers int64) {
	j := p.job(n.job)
	if j.ended {
		p.settle(n.cell, bytes, buffers)
		return
	}
	a := j.held[n.cell]
	a.bytes += bytes
	a.buffers += buffers
	if a == (leakAmount{}) {
		delete(j.held, n.cell)
		return
	}
	j.held[n.cell] = a
}

func (p *leakPass) buffer(e *trace.BufferEvent) {
	l := p.in.Memory.Ledger
	if b := l.Freed; b != nil {
		if n, ok := b.Note.(*leakNote); ok {
			p.live -= b.CapacityBytes
			p.move(n, -b.CapacityBytes, -1)
		}
		return
	}
	if e.ParentID != 0 || e.Space == trace.SpaceDevice {
		return
	}
	b := l.Live(e.BufferID)
	if b == nil {
		return
	}
	n, known := b.Note.(*leakNote)
	switch {
	case e.Event == trace.EventAlloc:
		n = &leakNote{job: e.Job, cell: p.cell(l.Class(b), e.Stage)}
		b.Note = n
		p.live += b.CapacityBytes
		p.move(n, b.CapacityBytes, 1)
		if len(n.cell.examples) < MaxExamples && p.job(n.job).ended {
			n.cell.examples = append(n.cell.examples, b.ID)
		}
	case !known:
	case e.Event == trace.EventHandoff && e.Job != n.job:
		p.move(n, -b.CapacityBytes, -1)
		n.job = e.Job
		p.move(n, b.CapacityBytes, 1)
	case e.DeltaBytes != 0:
		p.live += e.DeltaBytes
		p.move(n, e.DeltaBytes, 0)
	}
}

// maxLeakCells bounds the origins told apart.
const maxLeakCells = 1 << 10

func (p *leakPass) cell(class, stage string) *leakCell {
	k := leakKey{class, stage}
	if c := p.byKey[k]; c != nil {
		return c
	}
	if len(p.cells) >= maxLeakCells {
		return p.cells[maxLeakCells-1]
	}
	k = leakKey{strings.Clone(class), strings.Clone(stage)}
	c := &leakCell{leakKey: k, floors: make([]int64, len(p.demand))}
	p.byKey[k], p.cells = c, append(p.cells, c)
	return c
}

// Finish implements Pass.
func (p *leakPass) Finish(s *Summary, m *memory.Report) Outcome {
	limit := func(name string) float64 { return p.in.Threshold(leakName, name) }
	switch {
	case len(p.cells) == 0:
		return Outcome{NotApplicable: "the trace has no buffer events: what was freed is not known"}
	case float64(p.completed) < limit("min_jobs"):
		return Outcome{
			NotApplicable: fmt.Sprintf("%s completed: a trend needs %s, and more show more",
				count(p.completed, "job"), Plain(limit("min_jobs"))),
		}
	case m.Peak == nil:
		return Outcome{}
	}
	p.stride, p.sinceKept = 1, 0
	p.keep() // from the last job's end to the end of the trace
	var found []growth
	var rest []growth
	for _, c := range p.cells {
		g := p.judge(c, float64(m.Peak.LiveBytes))
		if g.kind == grows {
			found = append(found, g)
		} else if g.kind != flat {
			rest = append(rest, g)
		}
	}
	if len(found) == 0 {
		return Outcome{}
	}
	slices.SortFunc(found, func(a, b growth) int {
		return cmp.Or(cmp.Compare(b.perJob, a.perJob), cmp.Compare(a.cell.class, b.cell.class))
	})
	return Outcome{Findings: []Finding{p.finding(s, found, rest)}}
}

// Kinds of growth.
const (
	flat    = "flat"
	plateau = "plateau"
	pooling = "high-water pooling"
	grows   = "growth"
)

// growth is the trend of one cell's floors after warm-up.
type growth struct {
	cell          *leakCell
	kind          string
	from, to      float64
	perJob        float64
	z, tail, pool float64
}

// judge classifies a cell; peak is the live peak.
func (p *leakPass) judge(c *leakCell, peak float64) growth {
	limit := func(name string) float64 { return p.in.Threshold(leakName, name) }
	warm := max(1, len(c.floors)/4)
	y := make([]float64, 0, len(c.floors))
	for _, v := range c.floors[min(warm, len(c.floors)):] {
		y = append(y, float64(v))
	}
	g := growth{cell: c, kind: flat}
	if len(y) < 4 {
		return g
	}
	n := len(y)
	g.from, g.to = y[0], y[n-1]
	rise := g.to - g.from
	if rise < limit("min_growth_ratio")*peak || rise <= 0 {
		return g
	}
	g.perJob = rise / float64(n-1) * float64(len(p.demand)) / float64(p.completed+1)
	if n <= 256 {
		g.z = mannKendall(y)
		g.perJob = theilSen(y) * float64(len(p.demand)) / float64(p.completed+1)
	} else {
		g.z = mannKendall(thin(y, 256))
	}
	first, last := y[n/3]-y[0], y[n-1]-y[n-1-n/3]
	g.tail = last / math.Max(first, rise/float64(3*n))
	g.pool = p.withRecords(y, warm)
	switch {
	case g.z < limit("min_z"):
	case g.tail <= limit("max_tail_ratio"):
		g.kind = plateau
	case g.pool >= limit("max_pool_ratio"):
		g.kind = pooling
	default:
		g.kind = grows
	}
	return g
}

// thin keeps n values of y, evenly spaced, the last one among them.
func thin(y []float64, n int) []float64 {
	kept := make([]float64, n)
	for i := range kept {
		kept[i] = y[(i+1)*len(y)/n-1]
	}
	return kept
}

// withRecords is the share of the growth of y (the floors from job warm on) that came while demand
// was higher than in every interval before.
func (p *leakPass) withRecords(y []float64, warm int) float64 {
	var record int64
	for _, d := range p.demand[:min(warm, len(p.demand))] {
		record = max(record, d)
	}
	up, with := 0.0, 0.0
	for i := 1; i < len(y); i++ {
		// The floor of interval i differs from the one before by what the interval before kept.
		d := p.demand[min(warm+i-1, len(p.demand)-1)]
		if step := y[i] - y[i-1]; step > 0 {
			up += step
			if d > record {
				with += step
			}
		}
		record = max(record, d)
	}
	return ratio(with, up)
}

func (p *leakPass) finding(s *Summary, found, rest []growth) Finding {
	top := found[0]
	var perJob, from, to float64
	for _, g := range found {
		perJob += g.perJob
		from += g.from
		to += g.to
	}
	f := Finding{
		Severity: Error,
		Sentence: fmt.Sprintf(
			"What ended jobs left behind grew from %s to %s, by %s a completed job over %d jobs: "+
				"class %s, allocated in %s, is never freed.",
			units.Bytes(int64(from)), units.Bytes(int64(to)), units.Bytes(int64(perJob)),
			p.completed, top.cell.class, stageOr(top.cell.stage)),
		Evidence: Evidence{Numbers: Numbers{
			{"growth_per_job_bytes", perJob},
			{"from_bytes", from},
			{"to_bytes", to},
			{"completed_jobs", float64(p.completed)},
			{"trend_z", top.z},
			{"last_third_over_first_ratio", top.tail},
			{"with_demand_record_ratio", top.pool},
		}, Buffers: top.cell.examples},
	}
	if at := peakOf(s); at != nil && s.Memory != nil && s.Memory.EffectiveBytes > *at && perJob > 0 {
		f.Evidence.Numbers = append(f.Evidence.Numbers,
			Number{"to_memory_limit_jobs", float64(s.Memory.EffectiveBytes-*at) / perJob})
	}
	f.Evidence.Tables = []Table{leakTable(append(slices.Clone(found), rest...))}
	if s.LostEvents > 0 {
		f.Severity = Warning
		f.Sentence += fmt.Sprintf(" The %s that were not recorded may be its frees.",
			count(int(s.LostEvents), "event"))
	}
	return f
}

// peakOf is the peak RSS, else the live peak; nil where neither is known.
func peakOf(s *Summary) *int64 {
	if s.PeakRSSBytes != nil {
		return s.PeakRSSBytes
	}
	return s.PeakLiveBytes
}

func stageOr(stage string) string {
	if stage == "" {
		return "no stage"
	}
	return stage
}

func leakTable(all []growth) Table {
	t := Table{
		Name: "what jobs left behind", Columns: []string{
			"class", "stage", "kind", "from_bytes", "to_bytes", "growth_per_job_bytes", "buffers",
		},
	}
	for _, g := range all {
		t.Rows = append(t.Rows, []any{
			g.cell.class, stageOr(g.cell.stage), g.kind, int64(g.from), int64(g.to),
			int64(g.perJob), g.cell.buffers,
		})
	}
	return t
}
