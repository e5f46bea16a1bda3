package analyze

import (
	"strconv"
	"strings"

	"highwater/tracer/trace"
)

// rhoFigures measures S, g and l: what a partition takes of a synthesis worker, of a GPU worker and
// of the device's lock, at the concurrency of the recorded run, waiting excluded.
//
//  1. S is the time of the witness and synthesis spans of a partition, g that of stage_in and
//     prove_start (and of b_g2 where split_proving is false, because the GPU worker runs it then),
//     and what a GPU worker does besides, in no stage: unmapping what it frees, for one. That shows
//     from one receive to the next where the next partition was waiting when its last stage ended; the
//     mean over those is taken for all.
//  2. From a span is taken whatever its partition waited meanwhile: from request to acquire of a
//     permit, budget or lock, from send to sent, and spans of kind wait.
//  3. l is the time from the lock's acquire to its release.
//  4. Each is summed over partitions whose synthesis (prove_start) ended without error and divided
//     by their number.
type rhoFigures struct {
	manifest *trace.Manifest
	kinds    map[string]string
	waits    map[partitionKey]*waitClock
	open     map[int64]openStage // spans of the stages in question, by id
	gpuStage map[string]bool
	workers  map[int64]bool // GPU workers seen
	turns    map[int64]*gpuTurn
	sent     map[partitionKey]int64 // when a partition was sent that is not received yet
	synth    meanTime
	gpu      meanTime
	besides  meanTime // what GPU workers do in no stage, where that shows
	lock     meanTime
	locks    int
}

type partitionKey struct{ job, partition int64 }

// gpuTurn is what a GPU worker has done since its latest receive.
type gpuTurn struct {
	key     partitionKey
	recvNS  int64
	endNS   int64 // of its latest stage so far; trace.Null before the first ends
	stageNS int64 // in stages, waiting excluded
	// what its partition had waited at the receive, and at that end
	waitedBefore, waitedAt int64
}

// waitClock adds up the time in which a partition waited for anything.
type waitClock struct {
	depth, since, total int64
	lockedAt            int64
}

func (c *waitClock) at(timeNS int64) int64 {
	if c.depth > 0 {
		return c.total + timeNS - c.since
	}
	return c.total
}

func (c *waitClock) begin(timeNS int64) {
	if c.depth == 0 {
		c.since = timeNS
	}
	c.depth++
}

func (c *waitClock) end(timeNS int64) {
	if c.depth == 0 {
		return
	}
	c.depth--
	if c.depth == 0 {
		c.total += timeNS - c.since
	}
}

type openStage struct{ waited int64 }

type meanTime struct{ sum, count int64 }

func newRhoFigures(m *trace.Manifest) rhoFigures {
	f := rhoFigures{
		manifest: m, kinds: map[string]string{}, waits: map[partitionKey]*waitClock{},
		open: map[int64]openStage{},
		gpuStage: map[string]bool{
			trace.StageStageIn:    true,
			trace.StageProveStart: true,
		}, workers: map[int64]bool{}, turns: map[int64]*gpuTurn{}, sent: map[partitionKey]int64{},
	}
	for _, r := range m.Resources {
		f.kinds[r.Name] = r.Kind
		if r.Kind == trace.ResourceLock {
			f.locks++
		}
	}
	if m.Settings["split_proving"].Value == "false" {
		f.gpuStage[trace.StageBG2] = true
	}
	return f
}

func (f *rhoFigures) clock(job, partition int64) *waitClock {
	k := partitionKey{job, partition}
	c := f.waits[k]
	if c == nil {
		c = &waitClock{lockedAt: trace.Null}
		f.waits[k] = c
	}
	return c
}

func (f *rhoFigures) kind(resource string) string {
	if k, ok := f.kinds[resource]; ok {
		return k
	}
	if strings.HasPrefix(resource, "gpu_lock/") {
		return trace.ResourceLock
	}
	return resource
}

func (f *rhoFigures) queue(e *trace.QueueEvent) {
	kind := f.kind(e.Resource)
	if e.Job < 0 || e.Partition < 0 || kind == trace.ResourceJob {
		return
	}
	c := f.clock(e.Job, e.Partition)
	switch e.Event {
	case trace.EventRequest, trace.EventSend:
		c.begin(e.TimeNS)
	case trace.EventAcquire, trace.EventSent, trace.EventCancel:
		c.end(e.TimeNS)
	}
	switch kind {
	case trace.ResourceChannel:
		f.channel(e)
	case trace.ResourceLock:
		f.lockEvent(e, c)
	}
}

// channel follows partitions from their send to the GPU worker that receives them.
func (f *rhoFigures) channel(e *trace.QueueEvent) {
	key := partitionKey{e.Job, e.Partition}
	if e.Event == trace.EventSend {
		f.sent[key] = e.TimeNS
	}
	if e.Event != trace.EventRecv {
		return
	}
	sent, ok := f.sent[key]
	delete(f.sent, key)
	if e.Worker < 0 {
		return
	}
	if t := f.turns[e.Worker]; t != nil && ok && t.endNS != trace.Null && sent <= t.endNS {
		waited := t.waitedAt - t.waitedBefore
		f.besides.sum += max(0, e.TimeNS-t.recvNS-waited-t.stageNS)
		f.besides.count++
	}
	f.turns[e.Worker] = &gpuTurn{
		key: key, recvNS: e.TimeNS, endNS: trace.Null,
		waitedBefore: f.clock(e.Job, e.Partition).at(e.TimeNS),
	}
}

func (f *rhoFigures) lockEvent(e *trace.QueueEvent, c *waitClock) {
	switch e.Event {
	case trace.EventAcquire:
		c.lockedAt = e.TimeNS
	case trace.EventRelease:
		if c.lockedAt != trace.Null {
			f.lock.sum += e.TimeNS - c.lockedAt
			f.lock.count++
			c.lockedAt = trace.Null
		}
	}
}

func (f *rhoFigures) worksFor(s *trace.Span) *meanTime {
	switch {
	case s.Kind != trace.KindStage || s.Job < 0 || s.Partition < 0:
		return nil
	case s.Stage == trace.StageWitness || s.Stage == trace.StageSynthesis:
		return &f.synth
	case f.gpuStage[s.Stage]:
		return &f.gpu
	}
	return nil
}

func (f *rhoFigures) begin(s *trace.Span) {
	if s.Kind == trace.KindWait && s.Partition >= 0 {
		f.clock(s.Job, s.Partition).begin(s.BeginNS)
		return
	}
	if f.worksFor(s) == nil {
		return
	}
	if _, nested := f.open[s.ParentID]; !nested {
		f.open[s.SpanID] = openStage{f.clock(s.Job, s.Partition).at(s.BeginNS)}
	}
}

func (f *rhoFigures) end(s *trace.Span) {
	if s.Kind == trace.KindWait && s.Partition >= 0 {
		f.clock(s.Job, s.Partition).end(s.EndNS)
		return
	}
	m := f.worksFor(s)
	if m == nil {
		return
	}
	o, ok := f.open[s.SpanID]
	delete(f.open, s.SpanID)
	if !ok || s.Status == "error" {
		return
	}
	waited := f.clock(s.Job, s.Partition).at(s.EndNS)
	took := s.EndNS - s.BeginNS - (waited - o.waited)
	m.sum += took
	if t := f.turns[s.Worker]; m == &f.gpu && t != nil && t.key == (partitionKey{s.Job, s.Partition}) {
		t.endNS, t.stageNS, t.waitedAt = s.EndNS, t.stageNS+took, waited
	}
	if s.Stage == trace.StageSynthesis || s.Stage == trace.StageProveStart {
		m.count++
	}
	if s.Stage == trace.StageProveStart && s.Worker >= 0 {
		f.workers[s.Worker] = true
	}
}

// result is rho with its terms; both nil where a term is not known.
func (f *rhoFigures) result() (*float64, *RhoInputs) {
	in := RhoInputs{
		PartitionWorkers: f.permits(), GPUWorkers: f.setting("gpu_workers"),
		Devices: f.setting("devices"),
	}
	if in.Devices <= 0 {
		in.Devices = int64(max(f.locks, 1))
	}
	if in.GPUWorkers <= 0 {
		in.GPUWorkers = max(1, int64(len(f.workers))/in.Devices)
	}
	if in.PartitionWorkers <= 0 || f.synth.count == 0 || f.gpu.count == 0 || f.synth.sum <= 0 {
		return nil, nil
	}
	s := float64(f.synth.sum) / float64(f.synth.count)
	g := float64(f.gpu.sum) / float64(f.gpu.count)
	if f.besides.count > 0 {
		g += float64(f.besides.sum) / float64(f.besides.count)
	}
	in.SynthesisNS, in.GPUNS = int64(s), int64(g)
	slowest := g / float64(in.GPUWorkers*in.Devices)
	if f.lock.count > 0 {
		l := float64(f.lock.sum) / float64(f.gpu.count)
		in.LockNS = ptr(int64(l))
		slowest = max(slowest, l/float64(in.Devices))
	}
	return ptr(float64(in.PartitionWorkers) / s * slowest), &in
}

// setting is a numeric setting of the manifest, 0 where it has none.
func (f *rhoFigures) setting(name string) int64 {
	n, err := strconv.ParseInt(f.manifest.Settings[name].Value, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// permits is pw: the setting, else the capacity of the one permit resource.
func (f *rhoFigures) permits() int64 {
	if n := f.setting("partition_workers"); n > 0 {
		return n
	}
	for _, r := range f.manifest.Resources {
		if r.Kind == trace.ResourcePermit && r.Capacity != nil {
			return *r.Capacity
		}
	}
	return 0
}
