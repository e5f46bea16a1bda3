package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"highwater/analyze/report"
	"highwater/replay"
	"highwater/replay/models"
	"highwater/replay/models/published"
	"highwater/replay/pipeline"
	"highwater/tracer/setting"
)

// modelFlags replay a named model in place of a trace.
type modelFlags struct {
	Model      string `placeholder:"NAME" help:"Replay a model in place of a trace: a named one, such as cuzk/v8 (see --list-models), or FILE.toml."`
	ShowModel  bool   `help:"Print the model of --model, with --set and the what-if flags applied, as TOML, and replay nothing."`
	ListModels bool   `help:"List the named models, what blocks on what in each, and where its numbers come from."`
	Published  bool   `help:"Set the named models beside the runs that cuzk's authors published (docs/cuzk-validation.md)."`
}

// list prints the named models.
func (f *modelFlags) list(ui *tui) error {
	list, err := models.List()
	if err != nil {
		return fmt.Errorf("list models: %w", err)
	}
	if ui.json {
		return ui.printJSON(modelList{Models: list})
	}
	for _, m := range list {
		fmt.Fprintf(ui.out, "%-10s %s\n%-10s (%s)\n", m.Name, m.Doc, "", m.Source)
	}
	ui.note("settings that only models have:")
	for _, s := range pipeline.OwnSettings() {
		ui.note("  %-20s %s", s.Name, s.Doc)
	}
	return nil
}

// modelList is what --list-models prints.
type modelList struct {
	Models []models.Named `json:"models"`
}

// publishedDraws are the draws of docs/cuzk-validation.md.
const publishedDraws = 400

// published prints the named models beside the published runs.
func (c *replayCmd) published(ui *tui) error {
	ctx, stop := ui.interruptible(nil)
	defer stop()
	draws := c.Draws
	if draws <= 0 {
		draws = publishedDraws
	}
	p := ui.newProgress()
	rows, err := published.Predict(ctx, draws, c.Seed, func(done, total int) {
		p.update(step{Phase: "replay", Done: done, Total: total, Text: "published runs"})
	})
	p.done()
	switch {
	case errors.Is(err, context.Canceled):
		return fail(exitInterrupted, errors.New("interrupted before all runs were predicted"), "")
	case err != nil:
		return err
	}
	if ui.json {
		return ui.printJSON(published.Summarise(rows))
	}
	_, err = fmt.Fprint(ui.out, published.Markdown(rows))
	return err
}

// usage checks that the flags go together, and that there is one thing to replay.
func (c *replayCmd) usage(json bool) error {
	given := func(name string, is bool) string {
		if is {
			return name
		}
		return ""
	}
	figures := cmp.Or(given("--memory", c.Memory != ""), given("--out", c.Out != ""))
	other := cmp.Or(given("trace", len(c.Traces) > 0), given("--model", c.Model != ""),
		given("--show-model", c.ShowModel), given("--set", len(c.Set) > 0), figures, c.given())
	switch {
	case c.Draws < 0:
		return badInput("leave --draws out for the default", "--draws %d: not a positive number", c.Draws)
	case c.ListModels && c.Published:
		return badInput("give one of them", "--list-models and --published: each prints a table of its own")
	case c.ListModels && other != "":
		return badInput("leave one of them out", "--list-models replays nothing, so it takes no %s", other)
	case c.Published && other != "":
		return badInput("leave one of them out", "--published replays the published runs as they were, so it takes no %s", other)
	case c.ListModels || c.Published:
		return nil
	case c.ShowModel && c.Model == "":
		return badInput("name it: highwater replay --model cuzk/v8 --show-model", "--show-model without --model")
	case c.ShowModel && figures != "":
		return badInput("leave one of them out", "--show-model replays nothing, so it takes no %s", figures)
	case c.ShowModel && json:
		return badInput("leave --json out", "--show-model prints TOML, which --model reads again")
	}
	return c.oneSubject()
}

// oneSubject checks that either traces or a model are given.
func (c *replayCmd) oneSubject() error {
	switch {
	case len(c.Traces) == 0 && c.Model == "":
		return badInput("give one, or a named model: highwater replay --model cuzk/v8", "no trace to replay")
	case len(c.Traces) > 0 && c.Model != "":
		return badInput("leave one of them out", "both a trace (%s) and --model %s", c.Traces[0], c.Model)
	case c.Model != "" && c.Durations == replay.DurationsRecorded:
		return badInput("leave --durations out", "--durations recorded: a model has no recorded durations")
	}
	return nil
}

// what names the subject of the replay.
func (c *replayCmd) what() string {
	if c.Model != "" {
		return "model " + c.Model
	}
	return strings.Join(c.Traces, ", ")
}

// isModelSetting says whether only models have a setting of that name.
func isModelSetting(name string) bool {
	return slices.ContainsFunc(pipeline.OwnSettings(), func(s setting.Setting) bool { return s.Name == name })
}

// checkSettings is checkReplaySettings; a model has settings of its own besides.
func (c *replayCmd) checkSettings(set map[string]string) (map[string]string, error) {
	if c.Model == "" {
		return checkReplaySettings(set)
	}
	own := map[string]setting.Setting{}
	for _, s := range pipeline.OwnSettings() {
		own[s.Name] = s
	}
	shared, out := map[string]string{}, map[string]string{}
	for name, text := range set {
		s, ok := own[name]
		if !ok {
			shared[name] = text
			continue
		}
		canon, err := s.Parse(text)
		if err != nil {
			return nil, fail(exitUsage, fault("--set "+name, s, err), "")
		}
		out[name] = canon
	}
	checked, err := checkReplaySettings(shared)
	for name, text := range checked {
		out[name] = text
	}
	return out, err
}

// runModel replays a model in place of traces.
func (c *replayCmd) runModel(ui *tui, opts replay.Options) error {
	m, err := loadModel(c.Model)
	if err != nil {
		return fail(exitUsage, err, "")
	}
	if c.ShowModel {
		return show(ui, m, opts)
	}
	s := &subject{Predictor: replay.FromModel(m)}
	return c.answer(ui, s, opts, func(p *replay.Prediction) error {
		return printModel(ui, m, opts.Set, p)
	})
}

// loadModel reads a model file, or takes the named model.
func loadModel(name string) (*pipeline.Model, error) {
	if strings.HasSuffix(name, ".toml") {
		return pipeline.ReadFile(name)
	}
	return models.Load(name)
}

// show prints a model, changed as asked, as a file that --model reads.
func show(ui *tui, m *pipeline.Model, opts replay.Options) error {
	changed := *m
	if opts.Change != nil {
		if err := opts.Change(&changed); err != nil {
			return fail(exitUsage, err, "")
		}
	}
	m, err := changed.Apply(opts.Set)
	if err != nil {
		return fail(exitUsage, err, "")
	}
	text, err := pipeline.Format(m)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(ui.out, text)
	return err
}

// printModel prints what a named model's replay says.
func printModel(ui *tui, m *pipeline.Model, set map[string]string, p *replay.Prediction) error {
	changed := "under its own settings"
	if len(set) > 0 {
		var parts []string
		for _, name := range sortedKeys(set) {
			parts = append(parts, name+"="+set[name])
		}
		changed = "with " + strings.Join(parts, " ")
	}
	fmt.Fprintf(ui.out, "model %s %s: %s, seed %d\n", m.Name, changed, drawsText(p.Draws), p.Seed)
	g := report.Grid{
		Header: []string{"", "predicted", "low 80", "high 80", "low 95", "high 95"},
		Rows: [][]string{
			row("peak RSS", inBytes, p.PeakRSSBytes, p.PeakRSSBytesLow80, p.PeakRSSBytesHigh80,
				p.PeakRSSBytesLow, p.PeakRSSBytesHigh),
			row("peak live", inBytes, p.PeakLiveBytes, p.PeakLiveBytesLow80, p.PeakLiveBytesHigh80,
				p.PeakLiveBytesLow, p.PeakLiveBytesHigh),
			row("makespan", inNanos, p.MakespanNS, p.MakespanNSLow80, p.MakespanNSHigh80,
				p.MakespanNSLow, p.MakespanNSHigh),
			row("proof interval", inNanos, p.ProofIntervalNS, p.ProofIntervalNSLow80,
				p.ProofIntervalNSHigh80, p.ProofIntervalNSLow, p.ProofIntervalNSHigh),
			row("rho", inRho, p.Rho, p.RhoLow80, p.RhoHigh80, p.RhoLow, p.RhoHigh),
		},
	}
	if err := g.Write(ui.out, report.StyleOf(ui.out)); err != nil {
		return err
	}
	printVerdict(ui.out, p)
	printWhy(ui, p)
	for _, warning := range p.Warnings {
		ui.warn("%s", warning)
	}
	if p.Out != "" {
		ui.note("wrote the median draw to %s", p.Out)
	}
	ui.note("numbers: %s", m.Source)
	return nil
}

// printWhy prints what makes the peak, and how it grows.
func printWhy(ui *tui, p *replay.Prediction) {
	if text := why(p); text != nil {
		fmt.Fprintf(ui.out, "  %s\n", *text)
	}
	if p.Growth != nil && p.Growth.Text != "" {
		fmt.Fprintf(ui.out, "  %s\n", p.Growth.Text)
	}
}

// pileUp is how many finished partitions wait, times the permits, before they are called a pile.
const pileUp = 1

// why says what makes the peak where finished partitions pile up in front of the GPU workers; nil
// where they do not.
func why(p *replay.Prediction) *string {
	permits := p.QueueMaxItems["permits_held"]
	backlog := p.QueueMaxItems["backlog"]
	if p.Rho == nil || *p.Rho < 1 || permits == 0 || backlog < pileUp*permits {
		return nil
	}
	release := p.Settings["permit_release"].Value
	text := fmt.Sprintf("pile-up: rho is %.2f, synthesis offers more than the GPU side takes, and up to %d "+
		"finished partitions wait in front of it", *p.Rho, backlog)
	if release == pipeline.ReleaseSynthEnd {
		text += ", which no permit bounds (permit_release=synth_end)"
	} else {
		text += fmt.Sprintf(", which permits (%d) and channel_capacity=%s bound", permits,
			p.Settings["channel_capacity"].Value)
	}
	return &text
}
