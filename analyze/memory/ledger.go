package memory

import (
	"strings"

	"highwater/tracer/trace"
)

// Owner is a partition, a job as a whole (Partition -1), or nobody (Job -1).
type Owner struct {
	Job, Partition int64
	Permits        int64 // held now

	place   Place
	bytes   int64 // of live host buffers, children apart from their pool
	buffers int64 // live, in any space
	had     bool  // it has owned a buffer
	gone    bool  // its send was withdrawn
	marks   []placeMark
}

type placeMark struct {
	epoch uint64
	place Place
	set   bool
}

// Place is where the owner is now.
func (o *Owner) Place() Place { return o.place }

// counts says whether the owner is a partition under way: it ends with its last free, or when its
// send is withdrawn.
func (o *Owner) counts() bool {
	return o.Partition >= 0 && !o.gone && (!o.had || o.buffers > 0)
}

// waitsUnpermitted says that the partition finished synthesis, waits for a GPU worker, and holds no
// permit.
func (o *Owner) waitsUnpermitted() bool {
	return (o.place == BlockedSend || o.place == Channel) && o.Permits <= 0
}

type ownerKey struct{ job, partition int64 }

// Buffer is what is kept of a live buffer.
type Buffer struct {
	ID, ParentID  int64
	Owner         *Owner
	CapacityBytes int64 // sum of its deltas
	ResidentBytes int64
	AllocNS       int64
	LastUseNS     int64 // trace.Null before its last use

	// Note is for one pass to keep what it knows of the buffer while it lives (analyze's leak).
	Note any

	class, stage word
	device       int64 // trace.None on the host
	source       word
	childBytes   int64 // capacity of live children
	childRes     int64
	resUnknown   bool
	estimated    bool
}

// Ledger replays buffer and queue events into what is alive, whose it is and where it waits. It is
// an Observer; passes that come after it in a walk see the state after each step.
type Ledger struct {
	Host        *Tally
	Devices     map[int64]*Tally
	Unpermitted Waiting // partitions that finished synthesis and wait without a permit
	Flaws       Flaws

	// Freed is the buffer that the current step freed, nil for every other step.
	Freed *Buffer
	// FirstRequestSeq is the first job's request, trace.Null before it.
	FirstRequestSeq, FirstRequestNS int64
	Setup                           Peak // the host's peak before the first job's request
	JobSource                       string

	words   words
	kinds   *resourceKinds
	buffers map[int64]*Buffer
	seen    idSet
	owners  map[ownerKey]*Owner
	places  [NumPlaces]Waiting
	sources map[word]*sourceBytes
	spare   []*Buffer

	// What the current step changed, for a Timeline; kept only where there is one.
	tracked        bool
	touchedClasses []word
	touchedPlaces  uint32
}

// sourceBytes is the ledger of one source (process): what its RSS is compared with.
type sourceBytes struct {
	resident  int64
	peak      int64 // of resident, in the current phase
	unknown   int64 // capacity of buffers whose resident bytes are not known
	estimated int64 // of resident, by formula
}

// NewLedger starts an empty ledger for a trace with manifest m.
func NewLedger(m *trace.Manifest) *Ledger {
	return &Ledger{
		Host: newTally(0), Devices: map[int64]*Tally{},
		FirstRequestSeq: trace.Null, FirstRequestNS: trace.Null,
		words: newWords(), kinds: newResourceKinds(m), buffers: map[int64]*Buffer{}, seen: idSet{},
		owners: map[ownerKey]*Owner{}, sources: map[word]*sourceBytes{},
	}
}

// Class is the class of a live or just freed buffer.
func (l *Ledger) Class(b *Buffer) string { return l.words.text[b.class] }

// OnDevice says whether b is device memory.
func (b *Buffer) OnDevice() bool { return b.device != trace.None }

// Observe takes one step.
func (l *Ledger) Observe(s *Step) {
	if l.Freed != nil {
		l.spare, l.Freed = append(l.spare, l.Freed), nil
	}
	switch s.Kind {
	case StepBuffer:
		l.buffer(s.Buffer)
	case StepQueue:
		l.queue(s.Queue)
	case StepSpanBegin, StepSpanEnd:
		if p, ok := l.kinds.afterSpan(s.Span, s.Kind == StepSpanEnd); ok && s.Span.Partition >= 0 {
			l.reach(l.owner(s.Span.Job, s.Span.Partition), p)
		}
	}
}

func (l *Ledger) owner(job, partition int64) *Owner {
	if job < 0 {
		job, partition = trace.None, trace.None
	}
	k := ownerKey{job, partition}
	o := l.owners[k]
	if o != nil {
		return o
	}
	o = &Owner{Job: job, Partition: partition, place: Admission}
	switch {
	case job < 0:
		o.place = Resident
	case partition < 0:
		o.place = Job
	}
	l.owners[k] = o
	l.count(o, 1)
	return o
}

// count adds the owner to the running counts by place, or (sign -1) takes it out.
func (l *Ledger) count(o *Owner, sign int64) {
	l.touchedPlaces |= 1 << o.place
	w := &l.places[o.place]
	w.Bytes += sign * o.bytes
	if !o.counts() {
		return
	}
	w.Partitions += sign
	if o.waitsUnpermitted() {
		l.Unpermitted.Partitions += sign
		l.Unpermitted.Bytes += sign * o.bytes
	}
}

// reach moves o on to p, never back.
func (l *Ledger) reach(o *Owner, p Place) {
	if o.place >= p || o.place >= Job {
		return
	}
	l.Host.beforePlace(o)
	for _, t := range l.Devices {
		t.beforePlace(o)
	}
	l.count(o, -1)
	o.place = p
	l.count(o, 1)
}

func (l *Ledger) queue(e *trace.QueueEvent) {
	kind := l.kinds.kind(e.Resource)
	if kind == trace.ResourceJob {
		l.jobEvent(e)
		return
	}
	if e.Job < 0 || e.Partition < 0 {
		return
	}
	o := l.owner(e.Job, e.Partition)
	switch {
	case kind == trace.ResourcePermit:
		l.permit(o, e)
	case kind == trace.ResourceChannel && e.Event == trace.EventCancel:
		l.count(o, -1)
		o.gone = true
		l.count(o, 1)
	}
	if p, ok := l.kinds.afterQueue(e); ok {
		l.reach(o, p)
	}
}

func (l *Ledger) permit(o *Owner, e *trace.QueueEvent) {
	l.count(o, -1)
	switch e.Event {
	case trace.EventAcquire:
		o.Permits++
	case trace.EventRelease:
		o.Permits--
	}
	l.count(o, 1)
}

// jobEvent starts the proving phase at the first job's request: peaks count from there.
func (l *Ledger) jobEvent(e *trace.QueueEvent) {
	if e.Event != trace.EventRequest || l.FirstRequestSeq != trace.Null {
		return
	}
	l.FirstRequestSeq, l.FirstRequestNS = e.Seq, e.TimeNS
	l.JobSource = strings.Clone(e.Source)
	for _, s := range l.sources {
		s.peak = s.resident
	}
	l.Setup = l.Host.Peak
	l.Host.rise(l, e.Seq, e.TimeNS, true)
	for _, t := range l.Devices {
		t.rise(l, e.Seq, e.TimeNS, true)
	}
}

func (l *Ledger) sourceOf(w word) *sourceBytes {
	s := l.sources[w]
	if s == nil {
		s = &sourceBytes{}
		l.sources[w] = s
	}
	return s
}

// tally is the tally of an event's space.
func (l *Ledger) tally(device int64) *Tally {
	if device == trace.None {
		return l.Host
	}
	t := l.Devices[device]
	if t == nil {
		t = newTally(len(l.Devices) + 1)
		l.Devices[device] = t
	}
	return t
}

// deviceOf is the device an event's bytes are on, trace.None for the host. Device memory without a
// number is device 0's.
func deviceOf(e *trace.BufferEvent) int64 {
	switch {
	case e.Space != trace.SpaceDevice:
		return trace.None
	case e.Device < 0:
		return 0
	}
	return e.Device
}

// ResidentOf is the touched bytes that the ledger of one source (process) counts now: what its RSS
// is compared with.
func (l *Ledger) ResidentOf(source string) int64 { return l.sourceOf(l.words.of(source)).resident }

// KindOf is the kind of a resource.
func (l *Ledger) KindOf(resource string) string { return l.kinds.kind(resource) }

// At is the partitions and bytes at a place now.
func (l *Ledger) At(p Place) Waiting { return l.places[p] }

// InFlight is the partitions now between the start of synthesis and the end of prove_start.
func (l *Ledger) InFlight() int64 {
	var n int64
	for p := Synthesis; p <= GPU; p++ {
		n += l.places[p].Partitions
	}
	return n
}

// OwnedBytes is the live host bytes that belong to jobs.
func (l *Ledger) OwnedBytes() int64 { return l.Host.LiveBytes - l.places[Resident].Bytes }

// OwnerOf is the owner with that job and partition, made if it is new.
func (l *Ledger) OwnerOf(job, partition int64) *Owner { return l.owner(job, partition) }

// Live is the live buffer with that id, nil where there is none.
func (l *Ledger) Live(id int64) *Buffer { return l.buffers[id] }
