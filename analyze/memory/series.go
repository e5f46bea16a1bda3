package memory

// maxBuckets bounds a series. Buckets double their width when time outgrows them, so a series holds
// between half as many and as many buckets, however long the trace.
const maxBuckets = 512

// firstBucketNS is the width of the buckets of a series that has just begun.
const firstBucketNS = 1 << 14

// Series is a figure over time, down-sampled: each bucket keeps the lowest and the highest value
// that the figure had in it, so that peaks survive.
type Series struct {
	// live_bytes, resident_bytes, rss_bytes, remainder_bytes, class/NAME, place/NAME
	Name     string
	BeginNS  int64
	BucketNS int64
	Buckets  []Bucket

	sampled bool // known only where it was sampled; else the value holds until the next change
	last    int64
}

// Bucket is what a figure was in one stretch of time.
type Bucket struct {
	Min, Max, Last int64
	Known          bool // false where a sampled figure was not sampled
}

func newSeries(name string, sampled bool) *Series {
	return &Series{Name: name, BucketNS: firstBucketNS, sampled: sampled}
}

// set notes that the figure is v from timeNS on (a sampled one: at timeNS). Times that fall count
// as the last one.
func (s *Series) set(timeNS, v int64) {
	if len(s.Buckets) == 0 {
		s.BeginNS, s.last = timeNS, v
		s.Buckets = append(make([]Bucket, 0, maxBuckets), Bucket{v, v, v, true})
		return
	}
	s.extend(timeNS)
	b := &s.Buckets[len(s.Buckets)-1]
	if !b.Known {
		*b = Bucket{v, v, v, true}
	}
	b.Min, b.Max, b.Last = min(b.Min, v), max(b.Max, v), v
	s.last = v
}

// extend makes the bucket of timeNS the last one. A value that holds fills the buckets on the way.
func (s *Series) extend(timeNS int64) {
	if timeNS < s.BeginNS {
		return
	}
	span := uint64(timeNS) - uint64(s.BeginNS)
	for span/uint64(s.BucketNS) >= maxBuckets {
		s.halve()
	}
	for len(s.Buckets) <= int(span/uint64(s.BucketNS)) {
		s.Buckets = append(s.Buckets, Bucket{s.last, s.last, s.last, !s.sampled})
	}
}

// halve merges buckets in pairs.
func (s *Series) halve() {
	n := 0
	for i := 0; i < len(s.Buckets); i += 2 {
		b := s.Buckets[i]
		if i+1 < len(s.Buckets) {
			b = b.merge(s.Buckets[i+1])
		}
		s.Buckets[n] = b
		n++
	}
	s.Buckets = s.Buckets[:n]
	s.BucketNS *= 2
}

func (b Bucket) merge(later Bucket) Bucket {
	switch {
	case !later.Known:
		return b
	case !b.Known:
		return later
	}
	return Bucket{min(b.Min, later.Min), max(b.Max, later.Max), later.Last, true}
}

// Timeline draws the series of a walk: totals, classes and places. It comes after its ledger in the
// walk.
type Timeline struct {
	ledger  *Ledger
	Live    *Series
	Res     *Series
	classes map[word]*Series
	places  [NumPlaces]*Series
	Waiting *Series // partitions that wait without a permit
}

func newTimeline(l *Ledger) *Timeline {
	l.tracked = true
	return &Timeline{
		ledger: l, classes: map[word]*Series{},
		Live: newSeries("live_bytes", false), Res: newSeries("resident_bytes", false),
		Waiting: newSeries("waiting_without_permit_partitions", false),
	}
}

// Observe takes one step.
func (t *Timeline) Observe(s *Step) {
	if s.Kind == StepSample {
		return
	}
	l := t.ledger
	if s.Kind == StepBuffer {
		t.Live.set(s.TimeNS, l.Host.LiveBytes)
		t.Res.set(s.TimeNS, l.Host.ResidentBytes)
	}
	for _, w := range l.touchedClasses {
		c := t.classes[w]
		if c == nil {
			if len(t.classes) >= maxClassSeries {
				continue
			}
			c = newSeries("class/"+l.words.text[w], false)
			t.classes[w] = c
		}
		c.set(s.TimeNS, l.Host.classBytes[w])
	}
	t.observePlaces(s)
	l.touchedClasses, l.touchedPlaces = l.touchedClasses[:0], 0
}

// maxClassSeries bounds the classes that get a series of their own; a program has tens of them.
const maxClassSeries = 256

func (t *Timeline) observePlaces(s *Step) {
	l := t.ledger
	if l.touchedPlaces == 0 {
		return
	}
	for p := range NumPlaces {
		if l.touchedPlaces&(1<<p) == 0 {
			continue
		}
		if t.places[p] == nil {
			t.places[p] = newSeries("place/"+p.String(), false)
		}
		t.places[p].set(s.TimeNS, l.places[p].Bytes)
	}
	t.Waiting.set(s.TimeNS, l.Unpermitted.Partitions)
}
