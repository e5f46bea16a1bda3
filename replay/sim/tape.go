package sim

import (
	"math"

	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// RSSMetric is the metric that a simulated trace samples, at each new maximum.
const RSSMetric = "process.memory.usage"

// sourceName is the source of a simulated trace's events.
const sourceName = "simulator"

// maxRecorded bounds the partitions of a simulation that is written as a trace.
const maxRecorded = 1 << 18

// tape writes a run as a trace.
type tape struct {
	data    *trace.Data
	seq     int64
	buffers int64             // ids given out
	ids     []map[int32]int64 // by entity: buffer number to id
	last    map[int64]int     // by id: its latest row
	open    []int             // by entity: index of its open span, -1 for none
	jobs    []int             // by job: index of its root span
	slots   []bool            // permit numbers in use
	slotOf  []int32           // by entity
	maxRSS  int64
	known   bool // an RSS law exists
	// last row of the scratch pool, and of the model's pools; BufferID 0 while there is none
	pool  trace.BufferEvent
	pools []trace.BufferEvent
}

// Record simulates once and returns the run as a trace, without manifest but for what the tables
// need. The error is a *DeadlockError or says that the run is too large to be kept.
func (s *Simulator) record(d Draw) (*trace.Data, Stats, error) {
	s.tape = &tape{
		data: &trace.Data{}, ids: make([]map[int32]int64, len(s.ents)), last: map[int64]int{},
		open: make([]int, len(s.ents)), jobs: make([]int, s.nJobs),
		slotOf: make([]int32, len(s.ents)), known: s.prog.model.Memory.Law != pipeline.LawNone,
		pools: make([]trace.BufferEvent, len(s.prog.model.Pools)),
	}
	for i := range s.tape.open {
		s.tape.open[i], s.tape.slotOf[i] = -1, -1
	}
	stats, err := s.Run(d)
	data := s.tape.data
	s.tape = nil
	return data, stats, err
}

func (t *tape) next() int64 {
	t.seq++
	return t.seq
}

func nanos(x float64) int64 { return int64(math.Round(x)) }

// begin records what lives from before the first job.
func (t *tape) begin(s *Simulator) {
	last := s.extra(extraLater)
	for _, c := range s.prog.model.Memory.Resident {
		t.buffer(s, c, last)
	}
	for i := range s.prog.cached {
		c, load := &s.prog.cached[i], s.prog.changes[s.prog.steps[s.prog.cached[i].loaded].arg]
		if c.preloaded {
			load.Event = trace.EventAlloc
			t.buffer(s, load, last)
		}
	}
	if s.pooled {
		t.growPool(s)
	}
}

// growPool records the scratch pool at a new high.
func (t *tape) growPool(s *Simulator) {
	high := max(s.scratchHigh, s.levels.scratch)
	if high > t.pool.CapacityBytes {
		t.resize(s, &t.pool, trace.BufferEvent{
			Class: trace.ClassCPUScratch, Space: trace.SpaceHost, CapacityBytes: high,
			Estimated: true,
		})
	}
}

// resizePool records the model's pool i at its size now.
func (t *tape) resizePool(s *Simulator, i int) {
	p := &s.prog.model.Pools[i]
	t.resize(s, &t.pools[i], trace.BufferEvent{
		Class: p.Class, Space: p.Space, CapacityBytes: s.pools[i].size,
	})
}

// resize records row, a pool at a new size, as what follows last.
func (t *tape) resize(s *Simulator, last *trace.BufferEvent, row trace.BufferEvent) {
	row.Seq, row.TimeNS, row.Source = t.next(), nanos(s.now), sourceName
	row.Event, row.BufferID = trace.EventResize, last.BufferID
	row.ResidentBytes = row.CapacityBytes
	row.DeltaBytes = row.CapacityBytes - last.CapacityBytes
	row.DeltaResidentBytes = row.ResidentBytes - last.ResidentBytes
	row.Device, row.Job, row.Partition, row.Worker = trace.None, trace.None, trace.None, trace.None
	if row.BufferID == 0 {
		t.buffers++
		row.Event, row.BufferID = trace.EventAlloc, t.buffers
	}
	*last = row
	t.data.Buffers = append(t.data.Buffers, row)
}

func (t *tape) change(s *Simulator, st *step, e *entity, id int32) {
	c := s.prog.changes[st.arg]
	if e.mult > 1 && id < s.nParts {
		c.Capacity *= int64(e.mult)
		c.Resident *= int64(e.mult)
	}
	t.buffer(s, c, id)
}

// buffer records one buffer event of an entity.
func (t *tape) buffer(s *Simulator, c pipeline.Change, id int32) {
	row := trace.BufferEvent{
		Seq: t.next(), TimeNS: nanos(s.now), Source: sourceName, Event: c.Event, Class: c.Class,
		Space:  c.Space,
		Device: trace.None, CapacityBytes: c.Capacity, ResidentBytes: c.Resident,
		Estimated: c.Estimated,
	}
	if c.Space == trace.SpaceDevice {
		row.Device = 0
	}
	row.Job, row.Partition = s.owner(id)
	row.Worker = t.worker(s, id)
	row.Stage, row.SpanID = t.stage(id)
	row.BufferID = t.bufferID(id, int32(c.Buffer), c.Event)
	if s.pooled && c.Class == trace.ClassCPUScratch {
		row.ParentID = t.pool.BufferID
	}
	if pool := s.prog.poolOf[c.Class]; pool > 0 {
		row.ParentID = t.pools[pool-1].BufferID
	}
	if i, ok := t.last[row.BufferID]; ok {
		prev := &t.data.Buffers[i]
		row.DeltaBytes = row.CapacityBytes - prev.CapacityBytes
		row.DeltaResidentBytes = row.ResidentBytes - prev.ResidentBytes
	} else {
		row.DeltaBytes, row.DeltaResidentBytes = row.CapacityBytes, row.ResidentBytes
	}
	t.last[row.BufferID] = len(t.data.Buffers)
	t.data.Buffers = append(t.data.Buffers, row)
}

func (t *tape) bufferID(id, number int32, event string) int64 {
	if t.ids[id] == nil {
		t.ids[id] = map[int32]int64{}
	}
	if event == trace.EventAlloc {
		t.buffers++
		t.ids[id][number] = t.buffers
	}
	return t.ids[id][number]
}

// owner is the job and partition of an entity.
func (s *Simulator) owner(id int32) (job, partition int64) {
	switch {
	case id < s.nParts:
		n := int32(s.policy.Partitions)
		return int64(id / n), int64(id % n)
	case id < s.nParts+s.nJobs:
		return int64(id - s.nParts), trace.None
	}
	return trace.None, trace.None
}

// worker is the GPU worker that has the entity, else its permit's number.
func (t *tape) worker(s *Simulator, id int32) int64 {
	if w := s.ents[id].worker; w >= 0 && id < s.nParts {
		return int64(w)
	}
	return int64(t.slotOf[id])
}

func (t *tape) stage(id int32) (name string, span int64) {
	if i := t.open[id]; i >= 0 {
		return t.data.Spans[i].Stage, t.data.Spans[i].SpanID
	}
	return "", 0
}

// sample records RSS at each new maximum.
func (t *tape) sample(s *Simulator) {
	rss := max(s.rssNow(), s.stats.StartupBytes)
	if !t.known || rss <= t.maxRSS {
		return
	}
	t.maxRSS = rss
	row := trace.Sample{
		TimeNS: nanos(s.now), Source: sourceName, Metric: RSSMetric,
		Value: float64(rss),
	}
	if n := len(t.data.Samples); n > 0 && t.data.Samples[n-1].TimeNS == row.TimeNS {
		t.data.Samples[n-1] = row
		return
	}
	t.data.Samples = append(t.data.Samples, row)
}

// rssNow is the resident set by the model's law.
func (s *Simulator) rssNow() int64 {
	m := &s.prog.model.Memory
	if m.Law == pipeline.LawProportional {
		resident := float64(s.levels.resident + s.levels.scratch)
		return m.BaseBytes + s.stats.withError((1+m.Slope)*resident)
	}
	return m.BaseBytes + s.stats.withError(float64(s.levels.resident+s.scratchHigh))
}

func (t *tape) beginSpan(s *Simulator, stage int32, _ *entity, id int32) {
	law := &s.prog.model.Stages[stage]
	name := law.Name
	row := t.span(s, id)
	if law.Parallelism > 0 {
		row.Threads = int64(math.Ceil(law.Parallelism))
	}
	row.Kind, row.Stage, row.Name = trace.KindStage, name, name
	row.Track = trackOf(row.Worker, s.ents[id].worker >= 0 && id < s.nParts, row.Partition >= 0)
	if row.Job >= 0 && t.jobs[row.Job] >= 0 {
		row.ParentID = t.data.Spans[t.jobs[row.Job]].SpanID
	}
	t.open[id] = len(t.data.Spans)
	t.data.Spans = append(t.data.Spans, row)
}

func trackOf(worker int64, gpu, partition bool) string {
	switch {
	case gpu:
		return "gpu/" + decimal(worker)
	case worker >= 0:
		return "synthesis/" + decimal(worker)
	case partition:
		return "finalise"
	}
	return "jobs"
}

func (t *tape) span(s *Simulator, id int32) trace.Span {
	row := trace.Span{
		BeginSeq: t.next(), EndSeq: trace.Null, Source: sourceName,
		SpanID: int64(len(t.data.Spans) + 1),
		Worker: t.worker(s, id), Device: trace.None, Stream: trace.Null, Threads: trace.Null,
		BeginNS: nanos(s.now), EndNS: trace.Null, CPUNS: trace.Null, Bytes: trace.Null,
	}
	row.Job, row.Partition = s.owner(id)
	if w := s.ents[id].worker; w >= 0 && id < s.nParts {
		row.Device = int64(w) / s.policy.GPUWorkers
	}
	return row
}

func (t *tape) endSpan(s *Simulator, id int32) {
	t.close(s, t.open[id])
	t.open[id] = -1
}

func (t *tape) close(s *Simulator, i int) {
	row := &t.data.Spans[i]
	row.EndSeq, row.EndNS, row.Status = t.next(), nanos(s.now), "ok"
}

// beginJob opens a job's root span at its admission.
func (t *tape) beginJob(s *Simulator, id int32) {
	row := t.span(s, id)
	row.Kind, row.Name, row.Track = trace.KindJob, "job-"+decimal(row.Job), "jobs"
	t.jobs[row.Job] = len(t.data.Spans)
	t.data.Spans = append(t.data.Spans, row)
}

func (t *tape) endJob(s *Simulator, e *entity) { t.close(s, t.jobs[e.job]) }

// queue records one operation on a resource.
func (t *tape) queue(s *Simulator, r resource, event string, id int32, op operation) {
	if r >= resourceFinaliser {
		return
	}
	t.number(r, event, id)
	row := trace.QueueEvent{
		Seq: t.next(), TimeNS: nanos(s.now), Source: sourceName, Resource: t.name(s, r, id),
		Event: event, Worker: t.worker(s, id), Amount: op.amount, LevelAfter: op.level,
		WaitingAfter: int64(op.waiting),
	}
	row.Job, row.Partition = s.owner(id)
	if s.policy.QueueOrder == pipeline.OrderPriority && (r == resourcePermit ||
		r == resourceChannel) {
		row.Priority = row.Job
	}
	t.data.Queues = append(t.data.Queues, row)
	if r == resourcePermit && event == trace.EventRelease {
		t.slots[t.slotOf[id]] = false
		t.slotOf[id] = -1
	}
	if r == resourceJob && event == trace.EventAcquire {
		t.beginJob(s, id)
	}
}

// number gives a permit's holder the lowest free number.
func (t *tape) number(r resource, event string, id int32) {
	if r != resourcePermit || event != trace.EventAcquire {
		return
	}
	for i, used := range t.slots {
		if !used {
			t.slots[i], t.slotOf[id] = true, int32(i)
			return
		}
	}
	t.slotOf[id] = int32(len(t.slots))
	t.slots = append(t.slots, true)
}

func (t *tape) name(s *Simulator, r resource, id int32) string {
	if r == resourceLock {
		return lockName(s.lockOf(&s.ents[id]))
	}
	return resourceNames[r]
}

var resourceNames = map[resource]string{
	resourceJob: "job", resourcePermit: "permit", resourceBudget: "budget",
	resourceChannel: "channel",
}
