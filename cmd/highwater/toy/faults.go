package toy

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed" // the C program's source
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"highwater/tracer/probe"
	"highwater/tracer/trace"
)

//go:embed csrc/faults.c
var faultsSource []byte

// Modes of Faults: how fresh memory is got.
const (
	FaultsSmall    = "small"    // 4 KiB pages
	FaultsHuge     = "huge"     // MADV_HUGEPAGE
	FaultsPopulate = "populate" // 4 KiB pages, MADV_POPULATE_WRITE before the threads start
	FaultsDouble   = "double"   // 4 KiB pages, grown by doubling with a copy
)

// ErrUnsupported says that the kernel refused the mode's advice.
var ErrUnsupported = errors.New("the kernel does not support this advice")

// BuildFaults compiles the C program csrc/faults.c into dir with gcc and gives its path.
func BuildFaults(ctx context.Context, dir string) (string, error) {
	source, program := filepath.Join(dir, "faults.c"), filepath.Join(dir, "faults")
	if err := os.WriteFile(source, faultsSource, 0o666); err != nil {
		return "", fmt.Errorf("build page-fault program: %w", err)
	}
	out, err := exec.CommandContext(ctx, "gcc", "-O2", "-pthread", "-o", program, source).
		CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build page-fault program: %w: %s", err, bytes.TrimSpace(out))
	}
	return program, nil
}

// Faults runs the compiled program: threads that fill mib mebibytes together in each of rounds
// rounds, one in ten of them on fresh memory. The trace has a job a round, a partition a thread,
// their memory, and the kernel's counters before and after each round.
func Faults(ctx context.Context, program, mode string, mib, threads, rounds int) (*trace.Data,
	error,
) {
	out, err := exec.CommandContext(ctx, program, mode, fmt.Sprint(mib), fmt.Sprint(threads),
		fmt.Sprint(rounds)).Output()
	if err != nil {
		return nil, fmt.Errorf("run page-fault program, mode %s: %w", mode, err)
	}
	return faultsTrace(mode, threads, string(out))
}

// faultsTrace turns the program's lines into a trace.
func faultsTrace(mode string, threads int, out string) (*trace.Data, error) {
	b := &faultsBuilder{threads: int64(threads), fresh: map[int64]int64{}}
	b.d.Manifest = faultsManifest(mode)
	lines := bufio.NewScanner(strings.NewReader(out))
	done := ""
	for n := 1; lines.Scan(); n++ {
		if err := b.line(lines.Text(), &done); err != nil {
			return nil, fmt.Errorf("read page-fault program's line %d: %w", n, err)
		}
	}
	switch {
	case done == "" || len(b.d.Samples) == 0:
		return nil, errors.New("read page-fault program: its last line is missing")
	case done != "ok":
		return nil, fmt.Errorf("page-fault program, mode %s: %w", mode, ErrUnsupported)
	}
	base := int64(b.d.Samples[0].Value) // RSS before the first round
	b.d.Manifest.BaseBytes = &base
	b.finish()
	return &b.d, nil
}

func faultsManifest(mode string) trace.Manifest {
	m := trace.Manifest{
		SchemaVersion: trace.SchemaVersion, Origin: trace.OriginRecorded,
		Program: "faults " + mode, Anchor: trace.Anchor{Kind: trace.AnchorMonotonic},
		SealedBy: trace.SealedByClose, ProcessEnd: trace.EndFinished,
		Sources: []trace.Source{{Name: "faults", Kind: "process", Device: trace.None}},
		Resources: []trace.Resource{
			{Name: "job", Kind: trace.ResourceJob, Unit: "job", Device: trace.None},
		},
	}
	m.Sources[0].Anchor = m.Anchor
	for _, x := range probe.Metrics() {
		m.Metrics = append(m.Metrics, trace.Metric{Name: x.Name, Unit: x.Unit, Kind: x.Kind})
	}
	return m
}

// faultsBuilder collects the events; finish orders and numbers them.
type faultsBuilder struct {
	d       trace.Data
	threads int64
	fresh   map[int64]int64 // round: bytes of fresh memory
	rounds  []faultsRound
	spans   int64
}

// faultsRound is the runs of one round.
type faultsRound struct {
	number     int64
	begin, end int64
}

func (b *faultsBuilder) line(text string, done *string) error {
	var name, status string
	var round, thread, begin, end, cpu int64
	var major, user, system, rss int64
	switch kind, _, _ := strings.Cut(text, " "); kind {
	case "sample":
		_, err := fmt.Sscanf(text, "sample %d %d %d %d %d %d", &begin, &round, &major, &user, &system,
			&rss)
		if err != nil {
			return fmt.Errorf("parse %q: %w", text, err)
		}
		b.sample(begin, map[string]float64{
			probe.RSS: float64(rss), probe.FaultsMinor: float64(round),
			probe.FaultsMajor: float64(major), probe.CPUUser: float64(user) / 1e6,
			probe.CPUSystem: float64(system) / 1e6,
		})
	case "stage":
		_, err := fmt.Sscanf(text, "stage %s %d %d %d %d %d", &name, &round, &thread, &begin, &end,
			&cpu)
		if err != nil {
			return fmt.Errorf("parse %q: %w", text, err)
		}
		b.stage(name, round, thread, [3]int64{begin, end, cpu})
	case "region":
		if _, err := fmt.Sscanf(text, "region %d %d", &round, &end); err != nil {
			return fmt.Errorf("parse %q: %w", text, err)
		}
		b.fresh[round] = end
	case "done":
		if _, err := fmt.Sscanf(text, "done %s %s", &name, &status); err != nil {
			return fmt.Errorf("parse %q: %w", text, err)
		}
		*done = status
	}
	return nil
}

// sample adds one reading, RSS first, as probe does.
func (b *faultsBuilder) sample(at int64, values map[string]float64) {
	for _, metric := range []string{
		probe.RSS, probe.FaultsMinor, probe.FaultsMajor, probe.CPUUser, probe.CPUSystem,
	} {
		b.d.Samples = append(b.d.Samples, trace.Sample{
			TimeNS: at, Source: "faults", Metric: metric, Value: values[metric],
		})
	}
}

func (b *faultsBuilder) stage(name string, round, thread int64, t [3]int64) {
	b.spans++
	b.d.Spans = append(b.d.Spans, trace.Span{
		Source: "faults", SpanID: b.spans, Kind: trace.KindStage, Stage: name, Name: name,
		Track: fmt.Sprintf("thread/%d", thread), Job: round, Partition: thread, Worker: thread,
		Device: trace.None, Stream: trace.Null, Threads: 1, BeginNS: t[0], EndNS: t[1],
		CPUNS: t[2], Bytes: trace.Null, Status: "ok",
	})
	n := len(b.rounds)
	if n == 0 || b.rounds[n-1].number != round {
		b.rounds = append(b.rounds, faultsRound{round, t[0], t[1]})
		return
	}
	r := &b.rounds[n-1]
	r.begin, r.end = min(r.begin, t[0]), max(r.end, t[1])
}

// finish adds jobs and buffers by round, and gives each event its place in the order.
func (b *faultsBuilder) finish() {
	id := int64(0)
	for _, r := range b.rounds {
		b.queue(trace.EventRequest, r.number, r.begin, 0)
		b.queue(trace.EventAcquire, r.number, r.begin, 1)
		part := b.fresh[r.number] / b.threads
		for i := range b.threads {
			if part > 0 {
				id++
				b.buffer(trace.EventAlloc, id, [2]int64{r.number, i}, r.begin, part)
				b.buffer(trace.EventFree, id, [2]int64{r.number, i}, r.end, part)
			}
		}
		b.queue(trace.EventRelease, r.number, r.end, 0)
	}
	b.order()
}

func (b *faultsBuilder) queue(event string, job, at, level int64) {
	b.d.Queues = append(b.d.Queues, trace.QueueEvent{
		TimeNS: at, Source: "faults", Resource: "job", Event: event, Job: job,
		Partition: trace.None, Worker: trace.None, Amount: 1, LevelAfter: level,
		WaitingAfter: trace.Null,
	})
}

func (b *faultsBuilder) buffer(event string, id int64, owner [2]int64, at, bytes int64) {
	e := trace.BufferEvent{
		TimeNS: at, Source: "faults", Event: event, BufferID: id, Class: trace.ClassA,
		Space: trace.SpaceHost, Device: trace.None, CapacityBytes: bytes, ResidentBytes: bytes,
		DeltaBytes: bytes, DeltaResidentBytes: bytes, Job: owner[0], Partition: owner[1],
		Worker: owner[1], Stage: trace.StageSynthesis,
	}
	if event == trace.EventFree {
		e.CapacityBytes, e.ResidentBytes = 0, 0
		e.DeltaBytes, e.DeltaResidentBytes = -bytes, -bytes
	}
	b.d.Buffers = append(b.d.Buffers, e)
}

// order numbers all events by time: a round's request, acquire and allocations, then the runs, then
// its frees and release. Times then rise strictly.
func (b *faultsBuilder) order() {
	type event struct {
		at, seq *int64
		rank    int
	}
	var all []event
	d := &b.d
	ranks := map[string]int{
		trace.EventRequest: 0, trace.EventAcquire: 1, trace.EventAlloc: 2, trace.EventFree: 5,
		trace.EventRelease: 6,
	}
	for i := range d.Queues {
		all = append(all, event{&d.Queues[i].TimeNS, &d.Queues[i].Seq, ranks[d.Queues[i].Event]})
	}
	for i := range d.Buffers {
		all = append(all, event{&d.Buffers[i].TimeNS, &d.Buffers[i].Seq, ranks[d.Buffers[i].Event]})
	}
	for i := range d.Spans {
		all = append(all, event{&d.Spans[i].BeginNS, &d.Spans[i].BeginSeq, 3},
			event{&d.Spans[i].EndNS, &d.Spans[i].EndSeq, 4})
	}
	slices.SortStableFunc(all, func(x, y event) int {
		return cmp.Or(cmp.Compare(*x.at, *y.at), cmp.Compare(x.rank, y.rank))
	})
	last := int64(0)
	for i, e := range all {
		last = max(*e.at, last+1)
		*e.at, *e.seq = last, int64(i+1)
	}
	slices.SortFunc(d.Queues, func(x, y trace.QueueEvent) int { return cmp.Compare(x.Seq, y.Seq) })
	slices.SortFunc(d.Buffers, func(x, y trace.BufferEvent) int { return cmp.Compare(x.Seq, y.Seq) })
	slices.SortFunc(d.Spans, func(x, y trace.Span) int { return cmp.Compare(x.BeginSeq, y.BeginSeq) })
}
