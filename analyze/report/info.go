package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"highwater/analyze"
	"highwater/internal/units"
	"highwater/tracer/trace"
)

// Info writes a summary: what was run, the five figures, set-up's own line, jobs, stages, settings,
// losses, doubts.
func Info(w io.Writer, s *analyze.Summary, style Style) error {
	p := &printer{w: w, style: style}
	p.heading(origin(s))
	p.keyValues("", about(s))
	p.blank()
	p.figures(s)
	p.keyValues("", counts(s))
	p.stages(s.Stages)
	p.settings(s)
	p.losses(s)
	for _, t := range s.Warnings {
		p.paragraph("  doubt  ", t)
	}
	return p.err
}

func origin(s *analyze.Summary) string {
	words := []string{s.Origin + " trace"}
	if s.Live {
		words = append(words, "still being written, or killed and not yet recovered")
	}
	if s.SealedBy != "" {
		words = append(words, "sealed by "+string(s.SealedBy))
	}
	if s.ProcessEnd != "" {
		words = append(words, "process "+string(s.ProcessEnd))
	}
	if s.EndReason != "" {
		words = append(words, string(s.EndReason))
	}
	return strings.Join(words, ", ")
}

// about is the program, the machine and the circuit; what the trace does not say is left out.
func about(s *analyze.Summary) []KeyValue {
	var list []KeyValue
	if s.Program != "" {
		list = append(list,
			KeyValue{Key: "program", Value: strings.TrimSpace(string(s.Program + " " + s.Commit))},
		)
	}
	if h := s.Host; h != nil && h.CPUs > 0 {
		list = append(list, KeyValue{
			Key: "host",
			Value: fmt.Sprintf("%s: %d CPUs %s, %s RAM", h.Name, h.CPUs, h.CPUModel,
				units.Bytes(h.RAMBytes)),
		})
	}
	if m := s.Memory; m != nil && m.EffectiveBytes > 0 {
		list = append(list, KeyValue{
			Key:   "memory limit",
			Value: units.Bytes(m.EffectiveBytes),
			Note:  "(" + m.Kind + ")",
		})
	}
	if c := s.Circuit; c != nil {
		list = append(list, KeyValue{
			Key: "circuit",
			Value: fmt.Sprintf("%s, %s constraints, domain %s", c.Name,
				units.Count(c.Constraints), units.Count(c.DomainSize)),
		})
	}
	return list
}

func counts(s *analyze.Summary) []KeyValue {
	setup := KeyValue{
		Key: "set-up", Value: Value("_ns", s.Setup.DurationNS),
		Note: "peak RSS " + Value("_bytes", s.Setup.PeakRSSBytes) + ", peak live " + Value("_bytes",
			s.Setup.PeakLiveBytes),
	}
	j := s.Jobs
	list := []KeyValue{ //nolint:prealloc // a literal reads best; a device or none follows
		setup,
		{Key: "base", Value: Value("_bytes", s.BaseBytes), Note: "RSS - ledger after loading"},
		{
			Key: "jobs",
			Value: fmt.Sprintf("%d submitted, %d finished, %d failed, %d cancelled, %d open",
				j.Submitted, j.Finished, j.Failed, j.Cancelled, j.Open),
		},
		{Key: "partitions", Value: units.Count(int64(s.Partitions))},
		{
			Key: "events",
			Value: fmt.Sprintf("%s buffer, %s queue, %s samples, %s spans (%d open)",
				units.Count(s.Events.Buffers), units.Count(s.Events.Queues),
				units.Count(s.Events.Samples), units.Count(s.Events.Spans), s.OpenSpans),
		},
		{Key: "observed", Value: Value("_ns", s.ObservedNS)},
	}
	list = append(list, exported(s.Recorder)...)
	return append(list, devices(s.DevicePeaks)...)
}

// exported is what became of the spans sent to an OpenTelemetry collector, nothing where none was
// asked for.
func exported(r *trace.RecorderCost) []KeyValue {
	if r == nil || r.OTLPEndpoint == "" {
		return nil
	}
	note := "to " + r.OTLPEndpoint
	if r.OTLPDropped > 0 {
		note = units.Count(r.OTLPDropped) + " not delivered to " + r.OTLPEndpoint
		if r.OTLPLastError != "" {
			note += ": " + r.OTLPLastError
		}
	}
	return []KeyValue{{Key: "OTLP spans", Value: units.Count(r.OTLPSpans), Note: note}}
}

func devices(peaks []analyze.DevicePeak) []KeyValue {
	list := make([]KeyValue, 0, len(peaks))
	for _, d := range peaks {
		list = append(list, KeyValue{
			Key:   fmt.Sprintf("device %d", d.Device),
			Value: units.Bytes(d.PeakLiveBytes),
			Note:  "peak live",
		})
	}
	return list
}

func (p *printer) stages(stages []analyze.Stage) {
	if len(stages) == 0 {
		return
	}
	p.blank()
	g := Grid{
		Title: "Stages",
		Header: []string{
			"stage",
			"count",
			"mean",
			"p50",
			"p95",
			"max",
			"total",
			"cpu",
			"open",
			"failed",
		},
	}
	for _, s := range stages {
		cpu := ""
		if s.CPUNS != nil {
			cpu = units.Nanos(*s.CPUNS)
		}
		g.Rows = append(g.Rows, []string{
			s.Name, strconv.Itoa(s.Count), Value("_ns", s.MeanNS), Value("_ns", s.P50NS),
			Value("_ns", s.P95NS), Value("_ns", s.MaxNS),
			units.Nanos(s.TotalNS), cpu, strconv.Itoa(s.Open), strconv.Itoa(s.Failed),
		})
	}
	p.grid(g)
}

func (p *printer) settings(s *analyze.Summary) {
	if len(s.Settings) == 0 {
		return
	}
	p.blank()
	g := Grid{Title: "Settings", Header: []string{"setting", "value", "source"}, Left: []int{1, 2}}
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		x := s.Settings[name]
		g.Rows = append(g.Rows, []string{name, x.Value, x.Source})
	}
	p.grid(g)
}

func (p *printer) losses(s *analyze.Summary) {
	p.blank()
	if s.LostEvents == 0 && len(s.Loss) == 0 {
		p.line("No event of the trace was lost.")
		return
	}
	g := Grid{
		Title:  "Lost events: " + units.Count(s.LostEvents),
		Header: []string{"writer", "from", "to", "count", "reason"},
		Left:   []int{4},
	}
	for _, x := range s.Loss {
		g.Rows = append(g.Rows, []string{
			x.Writer,
			units.Nanos(x.FromNS),
			units.Nanos(x.ToNS),
			units.Count(x.Count),
			x.Reason,
		})
	}
	p.grid(g)
}
