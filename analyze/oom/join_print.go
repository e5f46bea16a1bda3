package oom

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"highwater/analyze/report"
	"highwater/internal/units"
)

// print writes what the trace adds.
func (j *Join) print(w io.Writer, style report.Style) error {
	var list []report.KeyValue
	add := func(key, value string) {
		if value != "" {
			list = append(list, report.KeyValue{Key: key, Value: value})
		}
	}
	for _, warning := range j.Warnings {
		add("warning", warning)
	}
	add("held", j.held())
	add("by class", shares(j.ByClass))
	add("by stage", shares(j.ByStage))
	var places []string
	for _, p := range j.ByPlace[:min(len(j.ByPlace), 6)] {
		places = append(places, fmt.Sprintf("%s %s (%s)", p.Name, units.Bytes(p.Bytes),
			count(int(p.Partitions), "partition", "partitions")))
	}
	add("waiting at", strings.Join(places, ", "))
	if j.UnattributedBytes != nil {
		add("unattributed", fmt.Sprintf("%s of the victim's %s are in no recorded buffer",
			units.Bytes(*j.UnattributedBytes), size(j.VictimRSSBytes)))
	}
	if f := j.Finding; f != nil {
		add("explained by", fmt.Sprintf("%s (%s): %s", f.ID, f.Severity, f.Sentence))
		add("remedy", f.Remedy)
	} else {
		add("explained by", "no analyzer's finding")
	}
	j.printSurvivors(add)
	if err := report.KeyValues(w, "The run in "+j.Trace, list, style); err != nil {
		return fmt.Errorf("print what the trace adds: %w", err)
	}
	return nil
}

var momentWords = map[string]string{
	AtKill: "time of the kill", AtEnd: "end of the run", AtPeak: "peak",
}

func (j *Join) held() string {
	if j.HeldBytes == nil || j.AtNS == nil {
		return ""
	}
	return fmt.Sprintf("%s of recorded buffers at the %s, %s after the start",
		units.Bytes(*j.HeldBytes),
		momentWords[j.At], units.Nanos(*j.AtNS))
}

func shares(list []Held) string {
	var parts []string
	for _, h := range list[:min(len(list), 6)] {
		name := h.Name
		if name == "" {
			name = "no stage"
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s)", name, units.Bytes(h.Bytes),
			units.Percent(h.Ratio)))
	}
	return strings.Join(parts, ", ")
}

func (j *Join) printSurvivors(add func(key, value string)) {
	switch {
	case j.Survivor != nil:
		add("would survive", fmt.Sprintf("%s: %s, under the limit of %s", j.Survivor.text(),
			j.Survivor.outcome(), size(j.LimitBytes)))
	case len(j.Tried) > 0 && j.LimitBytes != nil:
		add("would survive", fmt.Sprintf("none of the %s tried stays under %s", count(len(j.Tried),
			"setting", "settings"), units.Bytes(*j.LimitBytes)))
	case len(j.Tried) > 0:
		add("would survive", "not known: the limit is not")
	}
	for i := range j.Tried {
		if t := &j.Tried[i]; j.Survivor == nil || i < len(j.Tried)-1 {
			add("  tried", t.text()+": "+t.outcome())
		}
	}
}

func (s *Survivor) text() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		parts = append(parts, name+"="+s.Settings[name])
	}
	return strings.Join(parts, " ")
}

func (s *Survivor) outcome() string {
	if s.Error != "" {
		return "cannot be replayed: " + s.Error
	}
	peak, name := s.PeakRSSBytes, "peak RSS "
	if peak == nil {
		peak, name = s.PeakLiveBytes, "peak live bytes "
	}
	text := name + size(peak)
	if s.PeakRSSBytesHigh != nil {
		text += fmt.Sprintf(" (at most %s)", units.Bytes(*s.PeakRSSBytesHigh))
	}
	if s.ProofIntervalNS != nil {
		text += ", " + units.Nanos(*s.ProofIntervalNS) + " a proof"
	}
	return text
}
