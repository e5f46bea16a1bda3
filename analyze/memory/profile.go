package memory

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/google/pprof/profile"

	"highwater/tracer/trace"
)

// ErrNothingLive is returned by Profile for a trace in which no host buffer was ever alive.
var ErrNothingLive = errors.New("the trace has no live host buffer to profile")

// Profile is the live host bytes at their peak as a pprof profile: sample types inuse_space in
// bytes (the default) and buffers. A sample's stack is class, stage, job, the class innermost, so
// that `pprof -top` lists classes and a flame graph opens by job; labels give the place, the
// partition, and whether the bytes were past their last use.
func Profile(t *trace.Trace) (*profile.Profile, error) {
	b := NewBuilder(&t.Manifest, false)
	if err := Walk(t, b); err != nil {
		return nil, err
	}
	return b.Profile()
}

// Profile is the function Profile for what the walk has shown so far.
func (b *Builder) Profile() (*profile.Profile, error) {
	host := b.Ledger.Host
	if host.Peak.LiveBytes <= 0 {
		return nil, ErrNothingLive
	}
	p := &profileBuilder{
		ledger: b.Ledger, functions: map[string]*profile.Location{},
		out: &profile.Profile{
			SampleType: []*profile.ValueType{
				{Type: "inuse_space", Unit: "bytes"}, {Type: "buffers", Unit: "count"},
			},
			DefaultSampleType: "inuse_space",
			PeriodType:        &profile.ValueType{Type: "space", Unit: "bytes"},
			Period:            1,
			TimeNanos:         b.manifest.Anchor.UnixNS + host.Peak.TimeNS,
			Comments: []string{
				fmt.Sprintf("live host bytes at seq %d, %d ns after the trace's anchor",
					host.Peak.Seq, host.Peak.TimeNS),
			},
		},
	}
	type line struct {
		key cellKey
		amounts
	}
	var lines []line
	host.atPeak(func(k cellKey, a amounts) { lines = append(lines, line{k, a}) })
	slices.SortFunc(lines, func(x, y line) int {
		return cmp.Or(cmp.Compare(x.key.owner.Job, y.key.owner.Job),
			cmp.Compare(x.key.owner.Partition, y.key.owner.Partition),
			cmp.Compare(x.key.class, y.key.class), cmp.Compare(x.key.stage, y.key.stage),
			cmp.Compare(y.bytes, x.bytes))
	})
	for _, l := range lines {
		p.sample(l.key, host.placeAtPeak(l.key.owner), l.amounts)
	}
	if err := p.out.CheckValid(); err != nil {
		return nil, fmt.Errorf("build profile: %w", err)
	}
	return p.out, nil
}

type profileBuilder struct {
	ledger    *Ledger
	functions map[string]*profile.Location
	out       *profile.Profile
}

func (p *profileBuilder) sample(k cellKey, place Place, a amounts) {
	stage := p.ledger.words.text[k.stage]
	if stage == "" {
		stage = "no stage"
	}
	job := "no job"
	if k.owner.Job >= 0 {
		job = fmt.Sprintf("job %d", k.owner.Job)
	}
	s := &profile.Sample{
		Location: []*profile.Location{
			p.frame(p.ledger.words.text[k.class]),
			p.frame(stage),
			p.frame(job),
		},
		Value: []int64{a.bytes, a.buffers},
		Label: map[string][]string{"place": {place.String()}},
	}
	if k.owner.Partition >= 0 {
		s.NumLabel = map[string][]int64{"partition": {k.owner.Partition}}
		s.NumUnit = map[string][]string{"partition": {"number"}}
	}
	if k.dead {
		s.Label["dead"] = []string{"past its last use"}
	}
	p.out.Sample = append(p.out.Sample, s)
}

// frame is the one location of a name.
func (p *profileBuilder) frame(name string) *profile.Location {
	if loc := p.functions[name]; loc != nil {
		return loc
	}
	id := uint64(len(p.out.Function) + 1)
	f := &profile.Function{ID: id, Name: name, SystemName: name}
	loc := &profile.Location{ID: id, Address: id, Line: []profile.Line{{Function: f}}}
	p.out.Function = append(p.out.Function, f)
	p.out.Location = append(p.out.Location, loc)
	p.functions[name] = loc
	return loc
}
