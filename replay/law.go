package replay

import (
	"fmt"
	"math"
	"strings"

	"highwater/internal/units"
	"highwater/replay/fit"
	"highwater/replay/pipeline"
)

// law is what a prediction rests on.
func (a *answer) law() Law {
	if a.fit == nil {
		return a.modelLaw()
	}
	rep := &a.fit.Report
	l := Law{
		Service: DurationsRecorded, Stages: []LawStage{}, OtherCores: rep.OtherCores,
		LockCapacity: a.variants[0].Machine.LockCapacity, Remainder: rep.Remainder.Law,
		RemainderErrorOf:    rep.Remainder.ErrorRatio,
		RemainderErrorBytes: rep.Remainder.ErrorBytes, Text: lawText(&rep.Remainder),
	}
	if !a.frozen {
		l.Service, l.CPUs, l.ServiceResidual = rep.Law, rep.CPUs, &rep.Misfit
		l.ResidualIndependent = &rep.MisfitIndependent
		for _, s := range rep.Stages {
			l.Stages = append(l.Stages, lawStage(&s))
		}
	}
	l.ServiceText = serviceText(&l)
	if rep.Remainder.Law != pipeline.LawNone {
		base := rep.Remainder.BaseBytes
		l.RemainderBytes = &base
	}
	return l
}

func lawStage(s *fit.StageReport) LawStage {
	out := LawStage{
		Stage: s.Name, Services: int64(s.Services), Parallelism: s.Parallelism, Weight: s.Weight,
		Sensitivity: s.Sensitivity, CPUMeasured: s.CPUMeasured,
	}
	if !math.IsNaN(s.Spread) {
		out.Residual = &s.Spread
	}
	return out
}

// modelLaw is that of a model without traces.
func (a *answer) modelLaw() Law {
	m := a.models[0]
	l := Law{
		Service: fit.LawSharing, CPUs: m.Machine.CPUs, Remainder: m.Memory.Law, Stages: []LawStage{},
		LockCapacity: m.Machine.LockCapacity,
	}
	if l.CPUs == 0 {
		l.Service = fit.LawIndependent
	}
	if l.Remainder != pipeline.LawNone {
		base := m.Memory.BaseBytes
		l.RemainderBytes = &base
	}
	l.Text = "the laws are those of the model " + m.Name
	l.ServiceText = l.Text
	return l
}

// serviceText says the contention law and what it leaves unexplained in a sentence.
func serviceText(l *Law) string {
	switch l.Service {
	case DurationsRecorded:
		return "every service takes as long as it was recorded to take"
	case fit.LawIndependent:
		return "every service takes as long as it takes, whatever runs beside it"
	}
	var parts []string
	sensitivity := 0.0
	for _, s := range l.Stages {
		sensitivity = max(sensitivity, s.Sensitivity)
		if s.Parallelism > 0 {
			parts = append(parts, fmt.Sprintf("%s %.3g", s.Stage, s.Parallelism))
		}
	}
	text := fmt.Sprintf("services share %.3g cores; alone they use %s", l.CPUs, strings.Join(parts, ", "))
	if sensitivity > 0 {
		text += fmt.Sprintf(" and slow each other by %s a core in memory",
			units.Percent(sensitivity))
	}
	if l.LockCapacity > 0 {
		text += fmt.Sprintf("; a device's lock lets %d start at once", l.LockCapacity)
	}
	if l.ServiceResidual != nil && l.ResidualIndependent != nil {
		text += fmt.Sprintf("; it leaves %s of the stages' times unexplained, no sharing %s",
			units.Percent(*l.ServiceResidual), units.Percent(*l.ResidualIndependent))
	}
	return text
}

// lawText says the law of RSS and its error in a sentence.
func lawText(r *fit.Remainder) string {
	text := "RSS = base (calibrated to the recorded peak) + ledger without scratch + most scratch so far"
	switch r.Law {
	case pipeline.LawNone:
		return "RSS is not predicted: the trace has neither its base nor its peak"
	case pipeline.LawProportional:
		text = "RSS = base + ledger times a factor (calibrated to the recorded peak)"
	}
	if r.ErrorBytes == nil {
		return text + "; how far RSS goes off it is not known: no peak was recorded"
	}
	return text + fmt.Sprintf("; its error is taken to be %s (standard deviation at the recorded "+
		"peak); that is what %d samples lay above it, what calibrating moved it, and no less than "+
		"recordings differ", units.Bytes(*r.ErrorBytes), r.Samples)
}
