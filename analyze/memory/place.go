package memory

import (
	"strings"

	"highwater/tracer/trace"
)

// Place is where a partition waits or works: the furthest that its events have reached. A buffer is
// where its owner is.
type Place uint8

// Places, in the order in which a partition reaches them; then Job for buffers of a job as a whole,
// and Resident for those of no job.
const (
	Admission Place = iota // its job was requested
	Budget                 // bytes were requested
	Permit                 // a synthesis permit was requested
	// the permit was acquired (the budget where there is no permit, or synthesis began)
	Synthesis
	BlockedSend // the channel was offered the partition and has not accepted it
	Channel     // accepted, not received
	Pickup      // received by a GPU worker
	LockWait    // the device's lock was requested
	GPU         // the lock was acquired, or prove_start began where there is no lock
	Finalise    // prove_start ended; until the last free
	Job         // partition -1
	Resident    // job -1
	NumPlaces
)

var placeWords = [NumPlaces]string{
	"admission", "budget", "permit", "synthesis", "blocked_send", "channel", "pickup", "lock_wait",
	"gpu",
	"finalise", "job", "resident",
}

// String is the place's word in reports.
func (p Place) String() string { return placeWords[p] }

// Places lists all places in order.
func Places() []Place {
	all := make([]Place, NumPlaces)
	for i := range all {
		all[i] = Place(i)
	}
	return all
}

// resourceKinds knows the kind of each resource by its name.
type resourceKinds struct {
	byName    map[string]string
	hasPermit bool
	hasLock   bool
}

func newResourceKinds(m *trace.Manifest) *resourceKinds {
	k := &resourceKinds{byName: map[string]string{}}
	for _, r := range m.Resources {
		k.byName[r.Name] = r.Kind
		k.note(r.Kind)
	}
	return k
}

func (k *resourceKinds) note(kind string) {
	k.hasPermit = k.hasPermit || kind == trace.ResourcePermit
	k.hasLock = k.hasLock || kind == trace.ResourceLock
}

// kind is the kind of a resource; one that the manifest does not list is judged by its name.
func (k *resourceKinds) kind(name string) string {
	if kind, ok := k.byName[name]; ok {
		return kind
	}
	kind := name
	if strings.HasPrefix(name, "gpu_lock/") {
		kind = trace.ResourceLock
	}
	k.byName[strings.Clone(name)] = kind
	k.note(kind)
	return kind
}

// afterQueue is the place that a queue event brings its partition to. A place already passed is
// never gone back to.
func (k *resourceKinds) afterQueue(e *trace.QueueEvent) (Place, bool) {
	switch k.kind(e.Resource) + " " + e.Event {
	case "budget request":
		return Budget, true
	case "budget acquire":
		return Synthesis, !k.hasPermit
	case "permit request":
		return Permit, true
	case "permit acquire":
		return Synthesis, true
	case "channel send":
		return BlockedSend, true
	case "channel sent":
		return Channel, true
	case "channel recv":
		return Pickup, true
	case "lock request":
		return LockWait, true
	case "lock acquire":
		return GPU, true
	}
	return Admission, false
}

// afterSpan is the place that the begin or the end of a stage brings its partition to.
func (k *resourceKinds) afterSpan(s *trace.Span, end bool) (Place, bool) {
	switch {
	case s.Kind != trace.KindStage:
	case s.Stage == trace.StageSynthesis && !end:
		return Synthesis, true
	case s.Stage == trace.StageProveStart && !end:
		return GPU, !k.hasLock
	case s.Stage == trace.StageProveStart:
		return Finalise, true
	}
	return Admission, false
}
