package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"highwater/analyze/oom"
	"highwater/analyze/report"
	"highwater/internal/regular"
	"highwater/replay"
	"highwater/tracer/trace"
)

type oomCmd struct {
	Files    []string `arg:"" optional:"" name:"file" help:"Logs to read, plain or gzip; - is standard input. Kernel logs, container logs, output of kubectl describe or docker inspect, pasted mails."`
	Dmesg    bool     `help:"Read the kernel's ring buffer (runs dmesg)."`
	Journald bool     `help:"Read the kernel's messages of this boot from the journal (runs journalctl)."`
	Trace    string   `placeholder:"DIR" help:"Trace of the run that was killed: what held the memory, which finding explains it, which setting would have survived."`
	Replay   bool     `negatable:"" default:"true" help:"With --trace: replay other settings until one stays under the limit (default on)."`
	All      bool     `help:"Print every event at length, not the last of many."`
}

// Help says what the exit codes mean.
func (*oomCmd) Help() string {
	return "Says which limit was hit, how much of it by what, what the counters do not explain, " +
		"whether the " +
		"victim was the cause, and what the text does not say. Reads kernel reports of any age " +
		"and shape, " +
		"also cut, reversed or pasted ones, exit statuses, and failures that are called out of " +
		"memory " +
		"and are not. Exit codes: 1 if an event was found, even with its limit unknown; 0 if " +
		"none was; " +
		"2 for bad usage or input that cannot be read."
}

// Examples implements exampler.
func (*oomCmd) Examples() string {
	return "  highwater oom --dmesg\n" +
		"  journalctl -k -b -1 | highwater oom -\n" +
		"  highwater oom /var/log/kern.log --trace run.hw --json\n"
}

// Run implements the subcommand.
func (c *oomCmd) Run(ui *tui) error {
	if len(c.Files) == 0 && !c.Dmesg && !c.Journald {
		return badInput("name a log, - for standard input, --dmesg or --journald",
			"nothing to read")
	}
	ctx, stop := ui.interruptible(nil)
	defer stop()
	reader := oom.NewReader()
	if err := c.read(ctx, reader); err != nil {
		return err
	}
	result := reader.Report()
	if c.Trace != "" {
		if err := c.join(ctx, ui, result); err != nil {
			return err
		}
	}
	for _, w := range result.Warnings {
		ui.warn("%s", w)
	}
	if err := c.print(ui, result); err != nil {
		return err
	}
	if len(result.Events) > 0 {
		return fail(exitVerdict, nil, "")
	}
	return nil
}

func (c *oomCmd) print(ui *tui, result *oom.Report) error {
	if ui.json {
		return ui.printJSON(result)
	}
	return oom.Print(ui.out, result, c.All, report.StyleOf(ui.out))
}

// read reads every input that was asked for.
func (c *oomCmd) read(ctx context.Context, reader *oom.Reader) error {
	for _, name := range c.Files {
		if err := readLog(reader, name); err != nil {
			return err
		}
	}
	if c.Dmesg {
		if err := readCommand(ctx, reader, "dmesg"); err != nil {
			return err
		}
	}
	if c.Journald {
		return readCommand(ctx, reader, "journalctl", "-k", "-b", "--no-pager", "-o", "json")
	}
	return nil
}

func readLog(reader *oom.Reader, name string) error {
	if name == "-" {
		if err := reader.Read("standard input", os.Stdin); err != nil {
			return fail(exitUsage, err, "")
		}
		return nil
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		hint := "give a log file"
		if _, err := os.Stat(name + "/manifest.json"); err == nil {
			hint = "a trace goes with --trace " + name + "; name the kernel's log, or --dmesg, " +
				"besides"
		}
		return badInput(hint, "read %s: it is a directory", name)
	}
	f, _, err := regular.Open(name)
	if err != nil {
		hint := ""
		if errors.Is(err, os.ErrPermission) {
			hint = "run it as root, or as a member of the group adm"
		}
		return fail(exitUsage, fmt.Errorf("read log: %w", err), hint)
	}
	defer f.Close()
	if err := reader.Read(name, f); err != nil {
		return fail(exitUsage, err, "")
	}
	return nil
}

// readCommand reads what a program prints.
func readCommand(ctx context.Context, reader *oom.Reader, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &limitedWriter{w: &stderr, left: 4 << 10}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fail(exitUsage, fmt.Errorf("run %s: %w", name, err), "give its output as a file "+
			"or on standard input: "+name+" | highwater oom -")
	}
	readErr := reader.Read(name, out)
	if err := cmd.Wait(); err != nil {
		return fail(exitUsage, fmt.Errorf("run %s: %w: %s", name, err,
			strings.TrimSpace(stderr.String())),
			"the kernel's log usually needs root: sudo "+name+" | highwater oom -")
	}
	if readErr != nil {
		return fail(exitUsage, readErr, "")
	}
	return nil
}

// limitedWriter keeps the first bytes written and drops the rest.
type limitedWriter struct {
	w    io.Writer
	left int
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	if _, err := l.w.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// join adds what the trace knows, and the replayed setting that would have survived.
func (c *oomCmd) join(ctx context.Context, ui *tui, result *oom.Report) error {
	t, err := openTrace(ui, c.Trace)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := oom.Explain(t, result); err != nil {
		return traceFailure(err)
	}
	if c.Replay {
		survive(ctx, t, result.Join)
	}
	if ctx.Err() != nil {
		return fail(exitInterrupted, errors.New("interrupted before the replays were done"), "")
	}
	return nil
}

// oomDraws is how many draws each setting gets: the question is only whether it stays under the
// limit.
const oomDraws = 100

// survive replays the trace under each candidate until one stays under the limit. That a setting
// cannot be replayed is part of the answer.
func survive(ctx context.Context, t *trace.Trace, join *oom.Join) {
	candidates := join.Candidates(&t.Manifest)
	if len(candidates) == 0 {
		return
	}
	p, err := replay.NewPredictor([]*trace.Trace{t}, replay.PredictorOptions{})
	for _, set := range candidates {
		s := oom.Survivor{Settings: set}
		if err != nil {
			s.Error = err.Error()
			join.Tried = append(join.Tried, s)
			return
		}
		replayUnder(ctx, p, &s, join.LimitBytes)
		join.Tried = append(join.Tried, s)
		if s.Survives != nil && *s.Survives {
			join.Survivor = &s
			return
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// replayUnder fills what a replay says of one setting.
func replayUnder(ctx context.Context, p *replay.Predictor, s *oom.Survivor, limit *int64) {
	opts := replay.Options{Set: s.Settings, Draws: oomDraws, Seed: 1}
	if limit != nil {
		opts.MemoryLimit = *limit
	}
	got, err := p.Run(ctx, opts)
	if err != nil {
		s.Error = err.Error()
		return
	}
	s.PeakRSSBytes, s.PeakRSSBytesHigh = got.PeakRSSBytes, got.PeakRSSBytesHigh
	s.PeakLiveBytes, s.ProofIntervalNS, s.OverLimitRatio = got.PeakLiveBytes, got.ProofIntervalNS,
		got.PeakOverLimitRatio
	if s.OverLimitRatio != nil {
		survives := *s.OverLimitRatio < replay.UnsafeRatio
		s.Survives = &survives
	}
}
