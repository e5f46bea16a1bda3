package tracer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"highwater/tracer/journal"
	"highwater/tracer/trace"
)

// workload records a well-formed piece of a run: a job of some partitions, each with a span, a
// buffer and a permit.
type workload struct {
	r       *Recorder
	mu      sync.Mutex
	permit  *Queue
	level   int64
	waiting int64
}

func newWorkload(r *Recorder) *workload {
	return &workload{r: r, permit: r.Queue(trace.Resource{Name: "permit", Kind: trace.ResourcePermit, Unit: "permit", Device: trace.None})}
}

func (w *workload) op(event string, o Owner, level, waiting int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.level += level
	w.waiting += waiting
	w.permit.Event(QueueOp{Event: event, Owner: o, Amount: 1, LevelAfter: w.level, WaitingAfter: w.waiting})
}

func (w *workload) partition(ctx context.Context, o Owner) {
	w.op(trace.EventRequest, o, 0, 1)
	w.op(trace.EventAcquire, o, 1, -1)
	_, s := w.r.Start(ctx, spec(trace.KindStage, trace.StageSynthesis, o))
	o.Span, o.Stage = s.ID(), trace.StageSynthesis
	b := w.r.Alloc(BufferSpec{Class: trace.ClassA, Space: trace.SpaceHost, Device: -1, CapacityBytes: 1000, Owner: o})
	b.Fill(1000)
	w.r.Sample("m", 1)
	s.End(nil)
	b.Free()
	w.op(trace.EventRelease, o, -1, 0)
}

func (w *workload) job(job, partitions int32) {
	ctx, s := w.r.Start(context.Background(), spec(trace.KindJob, fmt.Sprint("job ", job), Owner{Job: job, Partition: -1, Worker: -1}))
	for p := range partitions {
		w.partition(ctx, Owner{Job: job, Partition: p, Worker: 0})
	}
	s.End(nil)
}

func TestSealed(t *testing.T) {
	r, err := Create(filepath.Join(t.TempDir(), "t.hw"), Options{Manifest: listed, Source: "prove"})
	if err != nil {
		t.Fatal(err)
	}
	child, err := Join(r.Dir(), "setup")
	if err != nil {
		t.Fatal(err)
	}
	_, s := child.Start(context.Background(), spec(trace.KindStage, trace.StageSetup, NoOwner))
	if err := r.Close(trace.EndFinished, ""); !errors.Is(err, trace.ErrLiving) || !strings.Contains(err.Error(), "highwater recover") {
		t.Errorf("sealed while a source lives: %v", err)
	}
	s.End(nil)
	newWorkload(child).job(4, 10)
	if err := child.Close(trace.EndFinished, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Seal(r.Dir(), trace.SealOptions{ProcessEnd: trace.EndFinished}); err != nil {
		t.Fatal(err)
	}
	d := validate(t, r.Dir())
	if len(d.Spans) != 12 || len(d.Queues) != 30 || len(d.Samples) != 10 {
		t.Errorf("%d spans, %d queue events, %d samples", len(d.Spans), len(d.Queues), len(d.Samples))
	}
	for _, s := range d.Spans {
		if s.Source != "setup" || s.SpanID>>32 != 1 || s.EndNS <= s.BeginNS || len(s.OtelSpanID) != 16 || s.Track != "worker 1" {
			t.Errorf("span %+v", s)
		}
	}
	m := d.Manifest
	rows := int64(2*len(d.Spans) + len(d.Queues) + len(d.Samples) + len(d.Buffers))
	if len(m.Sources) != 2 || m.Recorder.Events < rows || m.Recorder.EventNS <= 0 || len(m.Loss) != 0 || m.ProcessEnd != trace.EndFinished {
		t.Errorf("manifest %+v", m)
	}
	if _, err := os.Stat(filepath.Join(r.Dir(), journalFolder)); err == nil {
		t.Error("the journal is still there")
	}
}

// TestSpansReachACollector wants the columns as attributes at the collector, once, and its count in
// the manifest.
func TestSpansReachACollector(t *testing.T) {
	var mu sync.Mutex
	var bodies []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		b, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		bodies = append(bodies, string(b))
		mu.Unlock()
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer s.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "5")
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "180000")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "180000")
	r := record(t, Options{Manifest: listed})
	newWorkload(r).job(1, 3)
	// Close does not wait for long, and this machine may be slow.
	eventually(t, "the spans are delivered", func() bool { return r.Export().Delivered == 4 })
	if err := r.Close(trace.EndFinished, ""); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	all := strings.Join(bodies, "")
	mu.Unlock()
	for _, want := range []string{"prover.job.id", "prover.partition.id", "prover.stage", "prover.worker", "job 1"} {
		if !strings.Contains(all, want) {
			t.Errorf("the collector did not get %q", want)
		}
	}
	d := validate(t, r.Dir())
	if c := d.Manifest.Recorder; c.OTLPSpans != 4 || c.OTLPDropped != 0 || c.OTLPEndpoint != s.URL || c.OTLPLastError != "" {
		t.Errorf("manifest says %+v", c)
	}
	for _, s := range d.Spans {
		if s.Attributes != "" && s.Attributes != "{}" {
			t.Errorf("span %s: columns as attributes too: %s", s.Name, s.Attributes)
		}
	}
}

func TestCollectorDownIsCounted(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+nobody(t))
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "200")
	r := record(t, Options{Manifest: listed})
	newWorkload(r).job(1, 3)
	if err := r.Close(trace.EndFinished, ""); err != nil {
		t.Fatal(err)
	}
	c := validate(t, r.Dir()).Manifest.Recorder
	if c.OTLPSpans != 4 || c.OTLPDropped != 4 || c.OTLPLastError == "" {
		t.Errorf("manifest says %+v", c)
	}
}

// nobody is an address on which nobody listens: the socket that has it only keeps others from it.
func nobody(t *testing.T) string {
	t.Helper()
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.CloseOnExec(s)
	t.Cleanup(func() { unix.Close(s) })
	if err := unix.Bind(s, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(s)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
}

const killEnv = "HIGHWATER_TRACER_CHILD" // trace folder for the child to record into

// killedChild records jobs until it is killed. One span is open all the time. It stops after some jobs, so
// that a parent which gets no CPU for seconds finds no full disk.
func killedChild(dir string) {
	r, err := Create(dir, Options{Manifest: listed, Source: "prove"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	w := newWorkload(r)
	r.Start(context.Background(), spec(trace.KindStage, trace.StageSetup, NoOwner))
	fmt.Println("ready")
	var wg sync.WaitGroup
	for g := range int32(4) {
		wg.Go(func() {
			for job := g; job < 4000; job += 4 {
				w.job(job, 5)
			}
		})
	}
	wg.Wait()
	for {
		_ = unix.Pause()
	}
}

// TestKilledRun kills a recording process at random moments and recovers its trace: valid, nothing
// acknowledged lost, spans that were open marked open.
func TestKilledRun(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for range 3 {
		dir := filepath.Join(t.TempDir(), "t.hw")
		witness := dir + ".witness"
		kill(t, dir, witness, rng.Int64N(3000))
		if recovered(t, dir, witness) == 0 {
			t.Error("no span was open at the kill")
		}
	}
}

// kill starts a recording child and kills it once it has had so many events acknowledged.
func kill(t *testing.T, dir, witness string, events int64) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), killEnv+"="+dir, WitnessEnv+"="+witness)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // where the test ends early
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("child says %q, %v", line, err)
	}
	if _, err := trace.Recover(dir, trace.RecoverOptions{}); !errors.Is(err, trace.ErrLiving) {
		t.Errorf("recovered a living run: %v", err)
	}
	eventually(t, "the child records", func() bool {
		told, err := ReadWitness(witness)
		if err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for _, n := range told {
			sum += n
		}
		return sum >= events
	})
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err == nil {
		t.Fatal("child ended by itself")
	}
}

// eventually polls with a deadline.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	const patience = 3 * time.Minute // only what hangs waits so long
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// recovered recovers and compares with the witness; it gives the number of spans that were open.
func recovered(t *testing.T, dir, witness string) int64 {
	t.Helper()
	told, err := ReadWitness(witness)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := trace.Recover(dir, trace.RecoverOptions{ProcessEnd: trace.EndKilled})
	if err != nil {
		t.Fatal(err)
	}
	for kind, name := range map[journal.Kind]string{
		journal.KindBuffer: "buffer", journal.KindQueue: "queue", journal.KindSample: "sample",
		journal.KindSpanBegin: "span_begin", journal.KindSpanEnd: "span_end",
	} {
		// Of each goroutine, and of the recorder itself, one more may have been written and not yet
		// counted.
		if got := rec.Events[name]; got < told[kind] || got > told[kind]+5 {
			t.Errorf("%s: %d recovered, %d acknowledged", name, got, told[kind])
		}
	}
	d := validate(t, dir)
	open := int64(0)
	for _, s := range d.Spans {
		if s.EndNS == trace.Null {
			open++
		}
	}
	if open != rec.OpenSpans || d.Manifest.SealedBy != trace.SealedByRecover || d.Manifest.ProcessEnd != trace.EndKilled {
		t.Errorf("%d open spans, ledger %+v", open, rec)
	}
	if rec.DamagedJournal != "" || len(rec.Warnings) > 0 {
		t.Errorf("a kill alone damages nothing: journal kept at %q, warnings %q",
			rec.DamagedJournal, rec.Warnings)
	}
	return open
}
