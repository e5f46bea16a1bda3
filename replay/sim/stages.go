package sim

import (
	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// stageLog keeps when the stages of a run began and ended, and nothing else of it.
type stageLog struct {
	spans []trace.Span
	open  []int // by entity: index of the span it is in
}

// Stages simulates m once and returns the closed spans of its stages with Kind, Stage, Job, BeginNS
// and EndNS alone: the same as Record's, of the same draw, at a small part of its cost. The errors
// are those of Record.
func (k *Programs) Stages(m *pipeline.Model, d Draw) ([]trace.Span, error) {
	if err := recordable(m); err != nil {
		return nil, err
	}
	s, err := k.simulator(m, withStages)
	if err != nil {
		return nil, err
	}
	s.stages = &stageLog{open: make([]int, len(s.ents))}
	if _, err := s.Run(d); err != nil {
		return nil, err
	}
	return s.stages.spans, nil
}

func (l *stageLog) begin(s *Simulator, stage, id int32) {
	l.open[id] = len(l.spans)
	job, _ := s.owner(id)
	l.spans = append(l.spans, trace.Span{
		Kind: trace.KindStage, Stage: s.prog.model.Stages[stage].Name, Job: job,
		BeginNS: nanos(s.now), EndNS: trace.Null,
	})
}

func (l *stageLog) end(s *Simulator, id int32) { l.spans[l.open[id]].EndNS = nanos(s.now) }
