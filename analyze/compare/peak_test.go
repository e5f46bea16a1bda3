package compare

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"highwater/tracer/trace"
)

// TestPeakSplitAddsUp: whatever two runs hold, the terms add up to the difference of their peaks,
// to the byte.
func TestPeakSplitAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, next := anyRun(t, "base"), anyRun(t, "new")
		s := splitPeaks(base.at, next.at)
		if s.DeltaBytes != s.NewBytes-s.BaseBytes {
			t.Fatalf("delta %d of %d and %d", s.DeltaBytes, s.BaseBytes, s.NewBytes)
		}
		sum := s.Unattributed
		for _, c := range s.Classes {
			if c.CountBytes+c.SizeBytes+c.LifetimeBytes != c.DeltaBytes ||
				c.NewBytes-c.BaseBytes != c.DeltaBytes {
				t.Fatalf("terms of %s do not add up: %+v", c.Class, c)
			}
			sum += c.DeltaBytes
		}
		if sum != s.DeltaBytes || s.Unattributed != 0 {
			t.Fatalf("classes and unattributed (%d) add up to %d of %d", s.Unattributed, sum,
				s.DeltaBytes)
		}
		back := splitPeaks(next.at, base.at)
		if back.DeltaBytes != -s.DeltaBytes {
			t.Fatalf("the way back is %d of %d", back.DeltaBytes, s.DeltaBytes)
		}
		same := splitPeaks(base.at, base.at)
		for _, c := range same.Classes {
			if c.CountBytes != 0 || c.SizeBytes != 0 || c.LifetimeBytes != 0 {
				t.Fatalf("a run differs from itself: %+v", c)
			}
		}
	})
}

// anyRun is a run of arbitrary buffers of arbitrary owners: allocated, resized, reclassed, handed
// on, freed or not.
func anyRun(t *rapid.T, label string) *Run {
	d := &trace.Data{Manifest: usualShop(1).manifest()}
	seq := int64(1)
	d.Queues = append(d.Queues, trace.QueueEvent{
		Seq: 1, TimeNS: 1, Source: "main", Resource: "job", Event: trace.EventRequest,
		Partition: -1, Worker: -1, Amount: 1, WaitingAfter: 1,
	})
	type held struct{ e trace.BufferEvent }
	var live []held
	add := func(e trace.BufferEvent) {
		seq++
		e.Seq, e.TimeNS = seq, seq*10
		d.Buffers = append(d.Buffers, e)
	}
	id := int64(0)
	steps := rapid.IntRange(0, 60).Draw(t, label+" steps")
	for range steps {
		what := rapid.IntRange(0, 6).Draw(t, "what")
		if what < 3 || len(live) == 0 {
			id++
			size := int64(rapid.IntRange(0, 1000).Draw(t, "size"))
			e := trace.BufferEvent{
				Source: "main", Event: trace.EventAlloc, BufferID: id, Space: trace.SpaceHost,
				Class:  rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "class"),
				Device: -1, CapacityBytes: size, DeltaBytes: size, ResidentBytes: trace.Null,
				DeltaResidentBytes: trace.Null, Worker: -1,
				Job: int64(rapid.IntRange(-1, 2).Draw(t, "job")), Partition: -1,
			}
			if e.Job >= 0 {
				e.Partition = int64(rapid.IntRange(-1, 2).Draw(t, "partition"))
			}
			live = append(live, held{e})
			add(e)
			continue
		}
		i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
		e := live[i].e
		e.DeltaBytes = 0
		switch what {
		case 3:
			e.Event = trace.EventFree
			add(withDelta(e, -e.CapacityBytes))
			live = append(live[:i], live[i+1:]...)
			continue
		case 4:
			size := int64(rapid.IntRange(0, 1000).Draw(t, "size"))
			e.Event, e.DeltaBytes = trace.EventResize, size-e.CapacityBytes
			e.CapacityBytes = size
		case 5:
			e.Event = trace.EventReclass
			e.Class = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "class")
		case 6:
			e.Event = trace.EventHandoff
			e.Job, e.Partition = int64(rapid.IntRange(0, 2).Draw(t, "job")), 0
		}
		add(e)
		live[i].e = e
	}
	r, err := ReadRun(trace.FromData(d))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func withDelta(e trace.BufferEvent, delta int64) trace.BufferEvent {
	e.DeltaBytes = delta
	return e
}

func TestPeakSplitNamesTheTerm(t *testing.T) {
	base := side(t, "base", 1, 1, func(s *shop) { s.noise = 0 })
	for _, c := range []struct {
		name   string
		change func(*shop)
		want   ClassTerm
	}{
		{"larger", func(s *shop) { s.aBytes = 5 << 20 }, ClassTerm{SizeBytes: 7 << 20}},
		{"longer", func(s *shop) {
			s.longer = map[[2]int64]float64{{0, 0}: 3, {0, 1}: 3}
		}, ClassTerm{LifetimeBytes: 8 << 20}},
		{"more", func(s *shop) { s.partitions = 4 }, ClassTerm{}},
	} {
		next := side(t, "new", 1, 1, func(s *shop) { s.noise = 0; c.change(s) })
		split := mustCompare(t, base, next, Options{}).PeakSplits[0]
		var got ClassTerm
		for _, x := range split.Classes {
			if x.Class == "a" {
				got = x
			}
		}
		if c.name == "more" {
			if got.CountBytes <= 0 || got.SizeBytes != 0 {
				t.Errorf("%s: %+v", c.name, got)
			}
			continue
		}
		if got.SizeBytes != c.want.SizeBytes || got.LifetimeBytes != c.want.LifetimeBytes ||
			got.CountBytes != 0 {
			t.Errorf("%s: size %d, lifetime %d, count %d; want %d, %d, 0", c.name, got.SizeBytes,
				got.LifetimeBytes, got.CountBytes, c.want.SizeBytes, c.want.LifetimeBytes)
		}
	}
}

// TestPeakSplitWithTooManyPartitions: where owners are added up the terms still are exact.
func TestPeakSplitWithTooManyPartitions(t *testing.T) {
	base := side(t, "base", 1, 1, nil)[0]
	next := side(t, "new", 2, 1, func(s *shop) { s.partitions = 5; s.aBytes += 12345 })[0]
	whole := next.at.merged()
	s := splitPeaks(base.at, whole)
	var sum int64
	for _, c := range s.Classes {
		sum += c.CountBytes + c.SizeBytes + c.LifetimeBytes
	}
	if sum != s.DeltaBytes || s.DeltaBytes == 0 {
		t.Errorf("terms add up to %d of %d", sum, s.DeltaBytes)
	}
}

func TestMadeCountsGiveUpTellingOwnersApart(t *testing.T) {
	m := madeCounts{byKey: map[madeKey]int32{}}
	for i := range int64(maxMadeKeys + 10) {
		m.add(ownerKey{i, 0}, int(i%3))
	}
	var sum int32
	for k, n := range m.byKey {
		if k.owner != everyone {
			t.Fatalf("an owner is left: %+v", k)
		}
		sum += n
	}
	if !m.full || sum != maxMadeKeys+10 {
		t.Error(fmt.Sprintf("%d buffers of %d", sum, maxMadeKeys+10))
	}
}
