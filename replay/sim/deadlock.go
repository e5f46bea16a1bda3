package sim

import (
	"fmt"
	"strings"

	"highwater/internal/units"
	"highwater/replay/pipeline"
)

// DeadlockError says that nothing can go on although partitions are left: who waits for what, and
// who holds it.
type DeadlockError struct {
	AtNS       float64
	Unfinished int64 // partitions
	Waits      []Wait
}

// Wait is those who wait for one thing.
type Wait struct {
	For    string
	Count  int64
	First  string // one of them
	HeldBy string // who holds it
}

func (e *DeadlockError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b,
		"deadlock at %.3f s of virtual time: %d partitions are not finished and nothing can go on",
		e.AtNS/1e9, e.Unfinished)
	for _, w := range e.Waits {
		fmt.Fprintf(&b, "; %d wait for %s, first %s", w.Count, w.For, w.First)
		if w.HeldBy != "" {
			fmt.Fprintf(&b, ", held by %s", w.HeldBy)
		}
	}
	return b.String()
}

var waitNames = map[state]string{
	stateAdmission: "admission (jobs_in_flight)",
	stateBudget:    "the byte budget (byte_budget)",
	statePermit:    "a permit (partition_workers)",
	stateSend:      "the channel to accept (channel_capacity)",
	stateChannel:   "a GPU worker (gpu_workers)",
	stateLock:      "the device's lock",
	stateFinaliser: "a finaliser",

	stateArrival:    "its arrival",
	stateBatch:      "the batch to fill (batch size)",
	stateDispatcher: "a dispatcher (dispatch workers)",
	stateHand:       "the serial dispatcher's hand",
	stateDepth:      "room in the queue depth (queue_depth)",
	statePacer:      "the pacer (pacer_target)",
	stateHandoff:    "room on the hand-off channel",
	stateCached:     "a cached object that another job loads",
	stateModelLock:  "a lock of the model",
	statePoll:       "bytes of the byte budget, in the background",
}

// deadlock explains why the run stopped.
func (s *Simulator) deadlock() *DeadlockError {
	d := &DeadlockError{AtNS: s.now, Unfinished: int64(s.nParts) - s.stats.Partitions}
	for st := stateAdmission; st < statePartitions; st++ {
		w := Wait{For: waitNames[st]}
		for id := range s.ents {
			e := &s.ents[id]
			if e.state != st {
				continue
			}
			if w.Count++; w.Count == 1 {
				w.First = s.name(int32(id))
				w.For += s.detail(e, int32(id))
			}
		}
		if w.Count > 0 {
			w.HeldBy = s.holders(st)
			d.Waits = append(d.Waits, w)
		}
	}
	return d
}

// detail says more of what the first of those who wait waits for.
func (s *Simulator) detail(e *entity, id int32) string {
	switch e.state {
	case stateModelLock:
		return " (" + s.prog.locks[e.what].Name + ")"
	case stateBudget:
		b := &s.budget
		return fmt.Sprintf(" of %s, %s reserved, %s asked for", units.Bytes(b.capacity),
			units.Bytes(b.level), units.Bytes(s.amount(resourceBudget, id)))
	case statePoll:
		return fmt.Sprintf(" (%s of %s, %s reserved)", units.Bytes(s.wanted(id)),
			units.Bytes(s.budget.capacity), units.Bytes(s.budget.level))
	}
	return ""
}

func (s *Simulator) holders(st state) string {
	var names []string
	more := 0
	for id := range s.ents {
		e := &s.ents[id]
		holds := st == statePermit && e.permit || st == stateBudget && e.budget > 0 ||
			st == stateAdmission && e.live > 0 || st == stateDispatcher && e.held && e.state != st
		if !holds {
			continue
		}
		if len(names) < 3 {
			names = append(names, s.name(int32(id)))
		} else {
			more++
		}
	}
	if bytes := s.cachedBytes(); st == stateBudget && bytes > 0 {
		names = append(names, "cached objects ("+units.Bytes(bytes)+")")
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func (s *Simulator) name(id int32) string {
	if id < s.nParts {
		n := int32(s.policy.Partitions)
		text := fmt.Sprintf("job %d partition %d", id/n, id%n)
		if s.policy.ByteBudget != pipeline.Unbounded && s.ents[id].budget > 0 {
			text += fmt.Sprintf(" (%s reserved)", units.Bytes(s.ents[id].budget))
		}
		return text
	}
	if id > s.extra(extraLater) {
		return s.loadName(id)
	}
	return fmt.Sprintf("job %d", id-s.nParts)
}

// whoIs is name without what it holds.
func (s *Simulator) whoIs(id int32) string {
	name, _, _ := strings.Cut(s.name(id), " (")
	return name
}

// cachedBytes is what cached objects hold of the byte budget.
func (s *Simulator) cachedBytes() (sum int64) {
	for i := range s.cached {
		if s.cached[i].present {
			sum += s.prog.cached[i].bytes
		}
	}
	return sum
}
