package prover

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"highwater/prover/circuit"
	"highwater/prover/groth16"
	"highwater/prover/hostmem"
	"highwater/tracer"
	"highwater/tracer/probe"
	"highwater/tracer/trace"
)

// SourceSetup is the name under which the set-up child records itself.
const SourceSetup = "setup"

// setupArgs are the set-up child's arguments.
type setupArgs struct {
	trace    string // directory of the parent's trace, "" for none
	cache    string
	id       groth16.CacheID
	sampleHz int64
	onDevice bool
}

// list gives the arguments as SetupMain parses them.
func (a setupArgs) list() []string {
	return []string{
		"-trace", a.trace, "-cache", a.cache, "-circuit", a.id.Circuit,
		"-log-size", strconv.Itoa(a.id.LogSize), "-seed", strconv.FormatUint(a.id.Seed, 10),
		"-sample-hz", strconv.FormatInt(a.sampleHz, 10), "-device=" + strconv.FormatBool(a.onDevice),
	}
}

func parseSetupArgs(args []string) (a setupArgs, err error) {
	f := flag.NewFlagSet(SetupSubcommand, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&a.trace, "trace", "", "")
	f.StringVar(&a.cache, "cache", "", "")
	f.StringVar(&a.id.Circuit, "circuit", "", "")
	f.IntVar(&a.id.LogSize, "log-size", 0, "")
	f.Uint64Var(&a.id.Seed, "seed", 0, "")
	f.Int64Var(&a.sampleHz, "sample-hz", 0, "")
	f.BoolVar(&a.onDevice, "device", false, "")
	if err := f.Parse(args); err != nil {
		return a, fmt.Errorf("read arguments of %s: %w", SetupSubcommand, err)
	}
	if a.cache == "" || f.NArg() > 0 {
		return a, fmt.Errorf("%s is started by prove, not by hand", SetupSubcommand)
	}
	return a, nil
}

// SetupMain is the set-up child: it compiles the circuit, sets up its keys and puts both into the
// cache, by rename. args are those that Run appended to Config.SetupCommand. It records itself as a
// further source of the parent's trace. A program that calls Run must call it when started with
// SetupSubcommand, and exit with an error if it returns one.
func SetupMain(ctx context.Context, args []string) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	a, err := parseSetupArgs(args)
	if err != nil {
		return err
	}
	var rec *tracer.Recorder
	if a.trace != "" {
		if rec, err = tracer.Join(a.trace, SourceSetup); err != nil {
			return fmt.Errorf("join trace: %w", err)
		}
	}
	return recordedSetup(ctx, rec, a)
}

// recordedSetup sets up under the recorder's eye and closes it.
func recordedSetup(ctx context.Context, rec *tracer.Recorder, a setupArgs) error {
	if rec == nil {
		return setUp(ctx, nil, a)
	}
	stopProbe := func() {}
	if a.sampleHz > 0 {
		p, err := probe.Start(rec, probe.Options{Hz: float64(a.sampleHz)})
		if err != nil {
			return errors.Join(err, rec.Close(trace.EndFailed, err.Error()))
		}
		stopProbe = func() { p.Stop() }
	}
	err := setUp(ctx, rec, a)
	stopProbe()
	switch {
	case ctx.Err() != nil:
		return errors.Join(err, rec.Close(trace.EndInterrupted, ""))
	case err != nil:
		return errors.Join(err, rec.Close(trace.EndFailed, err.Error()))
	}
	return rec.Close(trace.EndFinished, "")
}

func setUp(ctx context.Context, rec *tracer.Recorder, a setupArgs) (err error) {
	c, err := circuit.New(a.id.Circuit, a.id.LogSize)
	if err != nil {
		return err
	}
	env := groth16.Env{Mem: &hostmem.Allocator{Rec: rec}, NoTables: a.onDevice}
	tell := json.NewEncoder(os.Stdout)
	tell.Encode(setupReport{Stage: trace.StageCompile})
	var system *groth16.System
	err = setupStage(ctx, rec, trace.StageCompile, func(ctx context.Context) (err error) {
		system, err = groth16.Compile(ctx, env, c.Shape())
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, system.Free()) }()
	return setupStage(ctx, rec, trace.StageSetup, func(ctx context.Context) error {
		return makeKey(ctx, env, system, a, tell)
	})
}

// makeKey computes the keys of system and saves both.
func makeKey(ctx context.Context, env groth16.Env, system *groth16.System, a setupArgs,
	tell *json.Encoder,
) (err error) {
	report := func(done, total int64) {
		tell.Encode(setupReport{Stage: trace.StageSetup, Done: done, Total: total})
	}
	report(0, 0)
	opts := groth16.SetupOptions{Seed: a.id.Seed, Progress: report}
	if a.onDevice {
		s, err := setUpOnDevice(env.Mem.Rec)
		if err != nil {
			return err
		}
		opts.Device = s
		defer func() { err = errors.Join(err, s.Close()) }()
	}
	key, err := groth16.Setup(ctx, env, system, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, key.Free()) }()
	_, err = groth16.SaveCache(a.cache, a.id, system, key)
	return err
}

// setupStage runs one stage that belongs to no job inside its span.
func setupStage(ctx context.Context, rec *tracer.Recorder, name string,
	run func(context.Context) error,
) error {
	ctx, span := rec.Start(ctx, tracer.SpanSpec{
		Kind: trace.KindStage, Stage: name, Name: name, Track: "setup", Owner: tracer.NoOwner,
		Device: -1, Stream: trace.Null, Threads: trace.Null,
	})
	err := run(ctx)
	span.End(err)
	return err
}
