package prover

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"highwater/tracer"
	"highwater/tracer/journal"
	"highwater/tracer/trace"
)

// kills is how many proving processes TestCrash kills.
const kills = 10

// A short run tells how many events there are to choose a moment from. Those that are killed have so
// many jobs that none ends before it is killed, however late that comes.
const shortRun, longRun = "4", "200"

// TestCrash kills proving processes at many moments and recovers what they recorded: the trace is
// valid, no acknowledged event is missing, and the spans that were open are there. The witness is a
// file of counters that is raised only after an event was acknowledged, set-up child's included.
func TestCrash(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	warm := t.TempDir()
	startProve(t, warm, shortRun).finish(t) // sets up
	total := witnessed(startProve(t, warm, shortRun).finish(t))
	for i := range kills {
		dir, last := warm, total
		if i%5 == 4 {
			dir, last = t.TempDir(), 40 // an empty cache: in or near set-up
		}
		p := startProve(t, dir, longRun)
		moment := 1 + rng.Int64N(last)
		p.killAt(t, moment)
		counts := p.counts(t)
		t.Logf("kill %d after %d events: at %d", i, moment, witnessed(counts))
		checkRecovered(t, p.recover(t), counts)
	}
}

// provingProcess is a run in a process of its own.
type provingProcess struct {
	cmd              *exec.Cmd
	dir, witnessFile string
	output           bytes.Buffer
}

func startProve(t *testing.T, cacheDir, jobs string) *provingProcess {
	t.Helper()
	parent := t.TempDir()
	p := &provingProcess{dir: filepath.Join(parent, "run.hw"), witnessFile: filepath.Join(parent, "witness")}
	job, err := json.Marshal(proveJob{Dir: p.dir, CacheDir: cacheDir, Settings: map[string]string{
		"circuit": "mimc", "log_size": "10", "jobs": jobs, "jobs_in_flight": "4", "partitions": "3",
		"sample_hz": "100"}})
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), proveEnv+"="+string(job), tracer.WitnessEnv+"="+p.witnessFile)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// finish waits for an undisturbed run.
func (p *provingProcess) finish(t *testing.T) map[journal.Kind]int64 {
	t.Helper()
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("prove: %v: %s", err, p.output.String())
	}
	return p.counts(t)
}

func (p *provingProcess) counts(t *testing.T) map[journal.Kind]int64 {
	t.Helper()
	counts, err := tracer.ReadWitness(p.witnessFile)
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// killAt kills the process once it has had so many events acknowledged.
func (p *provingProcess) killAt(t *testing.T, moment int64) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for ; ; <-poll.C {
		over := len(ended) > 0 // asked first: after its end the witness changes no more
		counts, err := tracer.ReadWitness(p.witnessFile)
		if err == nil && witnessed(counts) >= moment {
			break
		}
		if over {
			t.Fatalf("the process ended by itself: %v: %s", <-ended, p.output.String())
		}
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-ended
}

// recover seals what was left. The set-up child dies with its parent, but not at the same instant.
func (p *provingProcess) recover(t *testing.T) *trace.Data {
	t.Helper()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for deadline := time.Now().Add(patience); ; <-poll.C {
		_, err := trace.Recover(p.dir, trace.RecoverOptions{})
		if err == nil {
			return checkTrace(t, p.dir)
		}
		if !errors.Is(err, trace.ErrLiving) || time.Now().After(deadline) {
			t.Fatalf("recover: %v", err)
		}
	}
}

// witnessed counts what every run does alike: how many samples there are depends on its duration.
func witnessed(counts map[journal.Kind]int64) (n int64) {
	for kind, c := range counts {
		if kind != journal.KindSample {
			n += c
		}
	}
	return n
}

// checkRecovered compares a recovered trace with the witness: each kind has at least as many rows
// as were acknowledged, and the spans that had begun and not ended are there, open.
func checkRecovered(t *testing.T, d *trace.Data, counts map[journal.Kind]int64) {
	t.Helper()
	ended := int64(0)
	for _, s := range d.Spans {
		if s.EndNS != trace.Null {
			ended++
		}
	}
	found := map[journal.Kind]int64{
		journal.KindBuffer: int64(len(d.Buffers)), journal.KindQueue: int64(len(d.Queues)),
		journal.KindSample: int64(len(d.Samples)), journal.KindSpanBegin: int64(len(d.Spans)), journal.KindSpanEnd: ended,
	}
	for kind, n := range found {
		if n < counts[kind] {
			t.Errorf("%d events of kind %s recovered, %d were acknowledged", n, fmt.Sprint(kind), counts[kind])
		}
	}
	for _, l := range d.Manifest.Loss {
		if !ofKill(l) {
			t.Errorf("loss: %+v", l)
		}
	}
	if open := int64(len(d.Spans)) - ended; open > 0 && d.Manifest.ProcessEnd != trace.EndUnknown {
		t.Errorf("%d spans are open and process_end is %q", open, d.Manifest.ProcessEnd)
	}
}

// ofKill says whether a kill alone explains a loss: a record that it cut in half, or a set-up child's
// journal that was not begun yet. Neither was ever acknowledged.
func ofKill(l trace.Loss) bool {
	return l.Reason == trace.LossTorn || l.Reason == trace.LossDamagedSource && l.Writer == SourceSetup
}
