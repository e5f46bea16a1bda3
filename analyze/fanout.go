package analyze

import "highwater/analyze/memory"

// selective is a pass that needs some kinds of steps only.
type selective interface{ wants() memory.Kinds }

// noSteps is for passes that judge by the facts alone, once the walk is over.
type noSteps struct{}

func (noSteps) wants() memory.Kinds { return 0 }

// Observe implements memory.Observer.
func (noSteps) Observe(*memory.Step) {}

// fanout hands each step to the memory builder, the figures, the facts, and then to the passes that
// want its kind. One observer in the walk costs less than twenty that look at a step to drop it.
type fanout struct {
	builder *memory.Builder
	figures *figures
	facts   *facts
	passes  [memory.NumStepKinds][]Pass
}

func newFanout(b *memory.Builder, f *figures, x *facts, passes []Pass) *fanout {
	o := &fanout{builder: b, figures: f, facts: x}
	for _, p := range passes {
		wanted := ^memory.Kinds(0)
		if s, ok := p.(selective); ok {
			wanted = s.wants()
		}
		for k := range memory.NumStepKinds {
			if wanted.Has(k) {
				o.passes[k] = append(o.passes[k], p)
			}
		}
	}
	return o
}

// Observe implements memory.Observer.
func (o *fanout) Observe(s *memory.Step) {
	o.builder.Observe(s)
	o.figures.Observe(s)
	o.facts.Observe(s)
	for _, p := range o.passes[s.Kind] {
		p.Observe(s)
	}
}
