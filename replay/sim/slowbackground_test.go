package sim_test

import (
	"highwater/replay/pipeline"
)

// startLoad starts a job's load of background object i, where it is not there, and lets it go as far
// as it gets without time.
func (s *slow) startLoad(job *slowPart, i int) {
	c, cached := &s.m.Cached[i], &s.flow.cached[i]
	switch {
	case !s.needs(job, i):
		return
	case cached.present:
		cached.last = s.now
		return
	}
	keep := int64(0)
	if c.Budgeted {
		keep = c.Bytes
	}
	p := &slowPart{id: 1 << 21, job: job.job, worker: -1, mult: 1, isJob: true, isLoad: true}
	p.acts = []slowAct{
		{word: "look", index: i, delta: [3]int64{c.LoadReserveBytes}}, {word: "load", index: i},
		{word: "work", left: c.LoadNS}, {word: "loaded_own", index: i},
		{word: "look", index: i, delta: [3]int64{keep}},
		{word: "work", left: c.SaveNS}, {word: "keep", index: i},
	}
	s.todo = append(s.todo, p)
	for p.acts[0].word == "look" || p.acts[0].word == "load" {
		a := p.acts[0]
		p.acts = p.acts[1:]
		s.doLoad(p, a)
	}
}

// doLoad does a word of a background load. One that finds no bytes looks again a poll later.
func (s *slow) doLoad(p *slowPart, a slowAct) {
	cached := &s.flow.cached[a.index]
	switch a.word {
	case "look":
		s.look(p, a)
	case "load":
		s.load(s.m.Cached[a.index].Bytes + s.m.Cached[a.index].LoadBytes)
	case "loaded_own":
		s.load(-s.m.Cached[a.index].LoadBytes)
		if cached.present {
			s.dropLoad(p, a.index)
		}
	case "keep":
		if cached.present {
			s.dropLoad(p, a.index)
			return
		}
		cached.present, cached.last = true, s.now
		if p.budget >= s.m.Cached[a.index].Bytes && s.m.Cached[a.index].Budgeted {
			p.budget -= s.m.Cached[a.index].Bytes
		}
		s.giveBudget(p, p.budget)
	}
}

func (s *slow) look(p *slowPart, a slowAct) {
	amount := a.delta[0]
	if amount == 0 || s.m.Policy.ByteBudget == pipeline.Unbounded {
		return
	}
	if s.m.Policy.ByteBudget.AtMost(s.held["budget"] + amount) {
		s.held["budget"] += amount
		p.budget += amount
		return
	}
	again := []slowAct{{word: "until", index: a.index, left: s.now + s.m.Cached[a.index].Poll()}, a}
	p.acts = append(again, p.acts...)
}

func (s *slow) dropLoad(p *slowPart, i int) {
	s.load(-s.m.Cached[i].Bytes)
	p.acts = nil
	s.giveBudget(p, p.budget)
}

// polls says whether p waits to look for bytes again.
func (p *slowPart) polls() bool {
	return p.isLoad && len(p.acts) > 1 && p.acts[0].word == "until"
}

// nextLook is when p looks again; ok is false where it would find nothing, as long as nothing else
// happens.
func (s *slow) nextLook(p *slowPart) (at float64, ok bool) {
	ok = s.m.Policy.ByteBudget.AtMost(s.held["budget"] + p.acts[1].delta[0])
	return p.acts[0].left, ok
}

// skipLooks moves looks that lie in the past, because they would have found nothing, to the next one.
func (s *slow) skipLooks() {
	for _, p := range s.todo {
		for p.polls() && p.acts[0].left < s.now-1e-6 {
			p.acts[0].left += s.m.Cached[p.acts[0].index].Poll()
		}
	}
}
