package memory_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"highwater/analyze/memory"
	"highwater/tracer/trace"
)

// draw makes a random valid sequence of buffer and queue events: top-level and pooled buffers in
// every space, resizes, fills, handoffs, reclasses and last uses, with the first job's request
// anywhere.
type draw struct {
	t      *rapid.T
	d      trace.Data
	seq    int64
	now    int64
	nextID int64
	live   []trace.BufferEvent
}

func (d *draw) int(name string, low, high int64) int64 {
	return rapid.Int64Range(low, high).Draw(d.t, name)
}

func (d *draw) tick() (int64, int64) {
	d.seq++
	d.now += d.int("dt", 0, 5)
	return d.seq, d.now
}

func (d *draw) emit(e trace.BufferEvent, event string, delta, deltaResident int64) {
	e.Seq, e.TimeNS = d.tick()
	e.Event, e.DeltaBytes, e.DeltaResidentBytes = event, delta, deltaResident
	d.d.Buffers = append(d.d.Buffers, e)
}

func (d *draw) alloc() {
	d.nextID++
	e := trace.BufferEvent{
		Source: "main", BufferID: d.nextID, Device: trace.None, Worker: trace.None,
		Class: rapid.SampledFrom([]string{"a", "b", "key", "aux"}).Draw(d.t, "class"),
		Space: rapid.SampledFrom([]string{
			trace.SpaceHost, trace.SpaceHost, trace.SpacePinned,
			trace.SpaceDevice,
		}).
			Draw(d.t, "space"),
		Stage: rapid.SampledFrom([]string{"", "synthesis", "prove_start"}).Draw(d.t, "stage"),
		Job:   d.int("job", -1, 2), Partition: d.int("partition", -1, 3),
	}
	e.CapacityBytes = d.int("bytes", 1, 1000)
	if e.Job < 0 {
		e.Partition = -1
	}
	if e.Space == trace.SpaceDevice {
		e.Device = d.int("device", 0, 1)
	}
	if p := d.pick("parent"); p != nil && p.ParentID == 0 && p.Space == e.Space &&
		p.Device == e.Device &&
		d.int("pooled", 0, 2) == 0 {
		if room := p.CapacityBytes - d.childBytes(p.BufferID); room > 0 {
			e.ParentID, e.CapacityBytes = p.BufferID, min(e.CapacityBytes, room)
		}
	}
	e.ResidentBytes = d.int("resident", 0, e.CapacityBytes)
	d.live = append(d.live, e)
	d.emit(e, trace.EventAlloc, e.CapacityBytes, e.ResidentBytes)
}

func (d *draw) pick(name string) *trace.BufferEvent {
	if len(d.live) == 0 {
		return nil
	}
	return &d.live[d.int(name, 0, int64(len(d.live)-1))]
}

func (d *draw) childBytes(id int64) int64 {
	var sum int64
	for _, e := range d.live {
		if e.ParentID == id {
			sum += e.CapacityBytes
		}
	}
	return sum
}

func (d *draw) change() {
	e := d.pick("buffer")
	if e == nil {
		return
	}
	switch event := rapid.SampledFrom([]string{
		trace.EventResize, trace.EventFill, trace.EventHandoff, trace.EventReclass,
		trace.EventLastUse, trace.EventFree, trace.EventFree,
	}).Draw(d.t, "event"); event {
	case trace.EventResize:
		if e.ParentID == 0 {
			grow := d.int("grow", 1, 500)
			e.CapacityBytes += grow
			d.emit(*e, event, grow, 0)
		}
	case trace.EventFill:
		to := d.int("to", 0, e.CapacityBytes)
		delta := to - e.ResidentBytes
		e.ResidentBytes = to
		d.emit(*e, event, 0, delta)
	case trace.EventHandoff:
		if e.Job >= 0 {
			e.Partition = d.int("partition", 0, 3)
		}
		d.emit(*e, event, 0, 0)
	case trace.EventReclass:
		e.Class = "h"
		d.emit(*e, event, 0, 0)
	case trace.EventLastUse:
		d.emit(*e, event, 0, 0)
	case trace.EventFree:
		d.free(e)
	}
}

func (d *draw) free(e *trace.BufferEvent) {
	if d.childBytes(e.BufferID) > 0 {
		return
	}
	gone := *e
	for i := range d.live {
		if d.live[i].BufferID == gone.BufferID {
			d.live = append(d.live[:i], d.live[i+1:]...)
			break
		}
	}
	capacity, resident := gone.CapacityBytes, gone.ResidentBytes
	gone.CapacityBytes, gone.ResidentBytes = 0, 0
	d.emit(gone, trace.EventFree, -capacity, -resident)
}

func (d *draw) queue() {
	seq, now := d.tick()
	job, partition := d.int("job", 0, 2), d.int("partition", 0, 3)
	op := rapid.SampledFrom([][2]string{
		{"permit", "request"},
		{"permit", "acquire"},
		{"channel", "send"},
		{"channel", "sent"},
		{"channel", "recv"},
		{"gpu_lock/0", "request"},
		{"gpu_lock/0", "acquire"},
		{"job", "request"},
	}).Draw(d.t, "op")
	if op[0] == "job" {
		partition = -1
	}
	d.d.Queues = append(d.d.Queues, trace.QueueEvent{
		Seq: seq, TimeNS: now, Source: "main", Resource: op[0], Event: op[1], Job: job,
		Partition: partition, Worker: trace.None, Amount: 1,
	})
}

// naive is the answer computed the slow way: the running sum as SQL gives it, and what was alive at
// its peak, by replaying everything up to there.
type naive struct {
	peak, peakSeq int64
	byClass       map[string]int64
	byPlace       map[string]int64
	byOwner       map[[2]int64]int64
}

func firstRequest(d *trace.Data) int64 {
	for _, e := range d.Queues {
		if e.Resource == "job" && e.Event == trace.EventRequest {
			return e.Seq
		}
	}
	return 0
}

func slow(d *trace.Data) naive {
	var n naive
	from, live, entered := firstRequest(d), int64(0), false
	for _, e := range d.Buffers {
		if e.Seq > from && !entered { // the level at the first request counts
			n.peak, n.peakSeq, entered = live, from, true
		}
		if e.Space != trace.SpaceDevice && e.ParentID == 0 {
			live += e.DeltaBytes
		}
		if e.Seq > from && live > n.peak {
			n.peak, n.peakSeq = live, e.Seq
		}
	}
	if !entered {
		n.peak, n.peakSeq = live, from
	}
	n.at(d)
	return n
}

// at replays buffers and places up to the peak.
func (n *naive) at(d *trace.Data) {
	alive := map[int64]trace.BufferEvent{}
	for _, e := range d.Buffers {
		if e.Seq > n.peakSeq || e.Space == trace.SpaceDevice {
			continue
		}
		alive[e.BufferID] = e
		if e.Event == trace.EventFree {
			delete(alive, e.BufferID)
		}
	}
	rank := map[[2]int64]int{}
	words := []string{
		"admission",
		"permit request",
		"permit acquire",
		"channel send",
		"channel sent",
		"channel recv",
		"gpu_lock/0 request",
		"gpu_lock/0 acquire",
	}
	for _, e := range d.Queues {
		for r, w := range words {
			if k := [2]int64{e.Job, e.Partition}; e.Seq <= n.peakSeq &&
				e.Resource+" "+e.Event == w {
				rank[k] = max(rank[k], r)
			}
		}
	}
	names := []string{
		"admission",
		"permit",
		"synthesis",
		"blocked_send",
		"channel",
		"pickup",
		"lock_wait",
		"gpu",
	}
	n.byClass, n.byPlace, n.byOwner = map[string]int64{}, map[string]int64{}, map[[2]int64]int64{}
	for _, e := range alive {
		bytes := e.CapacityBytes
		for _, child := range alive {
			if child.ParentID == e.BufferID {
				bytes -= child.CapacityBytes
			}
		}
		place := names[rank[[2]int64{e.Job, e.Partition}]]
		switch {
		case e.Job < 0:
			place = "resident"
		case e.Partition < 0:
			place = "job"
		}
		n.byClass[e.Class] += bytes
		n.byPlace[place] += bytes
		n.byOwner[[2]int64{e.Job, e.Partition}] += bytes
	}
}

func agree(t *rapid.T, what string, got memory.Shares, want map[string]int64) {
	have := map[string]int64{}
	for _, s := range got {
		have[s.Name] = s.Bytes
	}
	for name := range want {
		if have[name] != want[name] {
			t.Fatalf("%s: %s holds %d, want %d (%v against %v)", what, name, have[name], want[name],
				have, want)
		}
	}
	for name, bytes := range have {
		if want[name] != bytes {
			t.Fatalf("%s: %s holds %d, want %d", what, name, bytes, want[name])
		}
	}
}

// TestPeakIsTheNaivePeak compares the streaming peak and its attribution with a replay of
// everything.
func TestPeakIsTheNaivePeak(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &draw{t: t}
		for range rapid.IntRange(1, 120).Draw(t, "events") {
			switch d.int("what", 0, 5) {
			case 0, 1:
				d.alloc()
			case 2, 3, 4:
				d.change()
			default:
				d.queue()
			}
		}
		r, err := memory.Build(trace.FromData(&d.d))
		if err != nil {
			t.Fatal(err)
		}
		want := slow(&d.d)
		if want.peak == 0 {
			if r.Peak != nil {
				t.Fatalf("peak %+v of a host that holds nothing", r.Peak)
			}
			return
		}
		a := r.Peak
		if a == nil || a.LiveBytes != want.peak || a.Seq != want.peakSeq {
			t.Fatalf("peak %+v, want %d at seq %d\n%s", a, want.peak, want.peakSeq,
				trace.FormatText(&d.d))
		}
		if a.UnattributedBytes != 0 {
			t.Fatalf("%d bytes unattributed in a sound ledger", a.UnattributedBytes)
		}
		agree(t, "by class", a.ByClass, withoutZero(want.byClass))
		agree(t, "by place", a.ByPlace, withoutZero(want.byPlace))
		for _, h := range a.ByPartition {
			if got := want.byOwner[[2]int64{h.Job, h.Partition}]; got != h.Bytes {
				t.Fatalf("job %d partition %d holds %d, want %d", h.Job, h.Partition, h.Bytes, got)
			}
		}
		checkSeries(t, r, &d.d)
	})
}

func withoutZero(m map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for k, v := range m {
		if v != 0 {
			out[k] = v
		}
	}
	return out
}

// checkSeries checks that the down-sampled series keeps the highest and the lowest value of the
// whole trace.
func checkSeries(t *rapid.T, r *memory.Report, d *trace.Data) {
	var live, high, low int64
	first := true
	for _, e := range d.Buffers {
		if e.Space != trace.SpaceDevice && e.ParentID == 0 {
			live += e.DeltaBytes
		}
		if first {
			high, low, first = live, live, false
		}
		high, low = max(high, live), min(low, live)
	}
	for _, s := range r.Series {
		if s.Name != "live_bytes" || len(s.Buckets) == 0 {
			continue
		}
		top, bottom := s.Buckets[0].Max, s.Buckets[0].Min
		for _, b := range s.Buckets {
			top, bottom = max(top, b.Max), min(bottom, b.Min)
		}
		if top != high || bottom != low || s.Buckets[len(s.Buckets)-1].Last != live {
			t.Fatalf("series spans %d..%d and ends at %d, want %d..%d and %d", bottom, top,
				s.Buckets[len(s.Buckets)-1].Last, low, high, live)
		}
		return
	}
	if !first {
		t.Fatal(fmt.Sprint("no series of live bytes among ", len(r.Series)))
	}
}
