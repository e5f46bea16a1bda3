package sim

import (
	"fmt"
	"strings"

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
}

// deadlock explains why the run stopped.
func (s *Simulator) deadlock() *DeadlockError {
	d := &DeadlockError{AtNS: s.now, Unfinished: int64(s.nParts) - s.stats.Partitions}
	for st := stateAdmission; st <= stateFinaliser; st++ {
		w := Wait{For: waitNames[st]}
		for id := range s.ents {
			if s.ents[id].state != st {
				continue
			}
			if w.Count++; w.Count == 1 {
				w.First = s.name(int32(id))
			}
		}
		if w.Count > 0 {
			w.HeldBy = s.holders(st)
			d.Waits = append(d.Waits, w)
		}
	}
	return d
}

func (s *Simulator) holders(st state) string {
	var names []string
	more := 0
	for id := range s.ents {
		e := &s.ents[id]
		holds := st == statePermit && e.permit || st == stateBudget && e.budget > 0 ||
			st == stateAdmission && e.state == statePartitions
		if !holds {
			continue
		}
		if len(names) < 3 {
			names = append(names, s.name(int32(id)))
		} else {
			more++
		}
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
			text += fmt.Sprintf(" (%d bytes reserved)", s.ents[id].budget)
		}
		return text
	}
	return fmt.Sprintf("job %d", id-s.nParts)
}
