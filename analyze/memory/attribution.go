package memory

import (
	"cmp"
	"slices"
	"strconv"

	"highwater/tracer/trace"
)

// attribution adds up what the tally's cells held at its peak, by class, place, stage and owner.
func (l *Ledger) attribution(t *Tally) Attribution {
	a := Attribution{
		LiveBytes: t.Peak.LiveBytes, ResidentBytes: t.Peak.ResidentBytes, Seq: t.Peak.Seq,
		TimeNS:                t.Peak.TimeNS,
		UnpermittedPartitions: t.Peak.Unpermitted.Partitions,
		UnpermittedBytes:      t.Peak.Unpermitted.Bytes,
	}
	g := newGroups()
	t.atPeak(func(k cellKey, x amounts) {
		g.add(l, k, t.placeAtPeak(k.owner), x)
		if k.dead {
			a.DeadBytes += x.bytes
		}
	})
	a.ByClass, a.ByPlace = g.class.shares(a.LiveBytes), g.place.shares(a.LiveBytes)
	a.ByStage, a.ByJob = g.stage.shares(a.LiveBytes), g.job.shares(a.LiveBytes)
	a.ByPartition, a.ClassByPlace = g.held(), g.classPlaces()
	a.UnattributedBytes = a.LiveBytes - g.total
	if t == l.Host {
		a.Partitions = placeCounts(&t.Peak.Places)
	}
	return a
}

func placeCounts(places *[NumPlaces]Waiting) []PlaceCount {
	var counts []PlaceCount
	for p, w := range places {
		if w != (Waiting{}) {
			counts = append(counts, PlaceCount{Place(p).String(), w.Partitions, w.Bytes})
		}
	}
	return counts
}

// groups are sums over cells by several keys at once.
type groups struct {
	class, place, stage, job group
	owners                   map[*Owner]*Held
	cross                    map[[2]string]*ClassPlace
	total                    int64
}

func newGroups() *groups {
	return &groups{
		class: group{}, place: group{}, stage: group{}, job: group{},
		owners: map[*Owner]*Held{}, cross: map[[2]string]*ClassPlace{},
	}
}

func (g *groups) add(l *Ledger, k cellKey, p Place, x amounts) {
	class, stage := l.words.text[k.class], l.words.text[k.stage]
	g.class.add(class, k.dead, x)
	g.place.add(p.String(), k.dead, x)
	g.stage.add(stage, k.dead, x)
	g.job.add(jobName(k.owner.Job), k.dead, x)
	g.total += x.bytes
	h := g.owners[k.owner]
	if h == nil {
		h = &Held{Job: k.owner.Job, Partition: k.owner.Partition, Place: p.String()}
		g.owners[k.owner] = h
	}
	h.Bytes += x.bytes
	h.Buffers += x.buffers
	at := [2]string{class, p.String()}
	c := g.cross[at]
	if c == nil {
		c = &ClassPlace{Class: class, Place: p.String()}
		g.cross[at] = c
	}
	c.Bytes += x.bytes
	c.Buffers += x.buffers
}

func jobName(job int64) string {
	if job == trace.None {
		return "none"
	}
	return strconv.FormatInt(job, 10)
}

// held lists partitions, the one with most bytes first.
func (g *groups) held() []Held {
	all := make([]Held, 0, len(g.owners))
	for _, h := range g.owners {
		if h.Job >= 0 && h.Bytes != 0 {
			all = append(all, *h)
		}
	}
	slices.SortFunc(all, func(a, b Held) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Job, b.Job),
			cmp.Compare(a.Partition, b.Partition))
	})
	return all[:min(len(all), MaxPartitions)]
}

func (g *groups) classPlaces() []ClassPlace {
	all := make([]ClassPlace, 0, len(g.cross))
	for _, c := range g.cross {
		if c.Bytes != 0 {
			all = append(all, *c)
		}
	}
	slices.SortFunc(all, func(a, b ClassPlace) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Class, b.Class),
			cmp.Compare(a.Place, b.Place))
	})
	return all
}

// group is sums by one name.
type group map[string]*Share

func (g group) add(name string, dead bool, x amounts) {
	s := g[name]
	if s == nil {
		s = &Share{Name: name}
		g[name] = s
	}
	s.Bytes += x.bytes
	s.ResidentBytes += x.resident
	s.Buffers += x.buffers
	if dead {
		s.DeadBytes += x.bytes
	}
}

// shares lists the sums, the largest first, empty ones left out.
func (g group) shares(whole int64) Shares {
	all := make(Shares, 0, len(g))
	for _, s := range g {
		if *s == (Share{Name: s.Name}) {
			continue
		}
		if whole != 0 {
			s.Ratio = float64(s.Bytes) / float64(whole)
		}
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return all
}
