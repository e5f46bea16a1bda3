package trace

import (
	"errors"
	"fmt"
	"highwater/tracer/journal"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// workload writes events as a prover does, eight workers at once, six buffers a partition, each
// event at a random moment.
type workload struct {
	j              *journal.Journal
	rng            *rand.Rand
	now            int64
	classes        [6]uint16
	stages         [3]uint16
	permit         uint16
	level, waiting int64
	partitions     int32
	workers        [8]struct{ partition, step int32 }
}

// Steps of a partition: 6 allocs, 12 fills, 6 last uses, request, acquire and release twice, 6
// frees.
const workloadSteps = 36

func fillJournal(b testing.TB, n int) *recording {
	r := newRecording(b)
	j := r.source("main", 0)
	w := &workload{j: j, rng: rand.New(rand.NewPCG(1, 2)), permit: j.Word("permit")}
	for i, c := range []string{"a", "b", "c", "aux", "h", "split"} {
		w.classes[i] = j.Word(c)
	}
	for i, s := range []string{"synthesis", "prove_start", "finalise"} {
		w.stages[i] = j.Word(s)
	}
	for range n {
		w.one(w.rng.IntN(len(w.workers)))
	}
	r.close(j)
	if st := j.Stats(); st.Lost > 0 {
		b.Fatalf("%d events were lost", st.Lost)
	}
	return r
}

func (w *workload) one(worker int) {
	at := &w.workers[worker]
	if at.step == 0 {
		w.partitions++
		at.partition = w.partitions
	}
	step, p := at.step, at.partition
	at.step = (step + 1) % workloadSteps
	rec := journal.Record{
		Job: p / 10, Partition: p % 10, Worker: int16(worker), Device: -1,
		Word1: w.stages[step/12], Span: uint32(p)*3 + uint32(step/12),
	}
	if step%12 == 0 {
		w.span(rec, journal.KindSpanBegin)
	}
	if step >= 24 && step < 30 {
		w.queue(rec, int(step)%3)
	} else {
		w.buffer(rec, step)
	}
	if step%12 == 11 {
		w.span(rec, journal.KindSpanEnd)
	}
}

func (w *workload) put(rec journal.Record) {
	w.now += 1 + int64(w.rng.ExpFloat64()*50_000)
	rec.TimeNS = w.now
	w.j.Append(&rec)
}

func (w *workload) span(rec journal.Record, kind journal.Kind) {
	rec.Kind, rec.Event, rec.ID, rec.Span = kind, 2, rec.Span, 0
	rec.Word0, rec.X, rec.Y = rec.Word1, Null, 1
	w.put(rec)
}

func (w *workload) queue(rec journal.Record, op int) {
	w.level += []int64{0, 1, -1}[op]
	w.waiting += []int64{1, -1, 0}[op]
	rec.Kind, rec.Event, rec.Word0, rec.X, rec.Y, rec.Parent = journal.KindQueue, uint8(1+op),
		w.permit, 1, w.level, uint32(w.waiting)
	w.put(rec)
}

func (w *workload) buffer(rec journal.Record, step int32) {
	class := step % 6
	rec.Kind, rec.ID, rec.Word0, rec.Space = journal.KindBuffer,
		uint32(rec.Job*10+rec.Partition)*6+uint32(class), w.classes[class], 1
	rec.X = 8<<20 + int64(class)<<16
	switch {
	case step < 6:
		rec.Event = journal.BufferAlloc
	case step < 18:
		rec.Event, rec.Y = journal.BufferFill, rec.X*int64(step/6)/2
	case step < 24:
		rec.Event, rec.Y = journal.BufferLastUse, rec.X
	default:
		rec.Event, rec.Y = journal.BufferFree, rec.X
	}
	w.put(rec)
}

// TestWorkload: what the benchmarks seal is a valid trace.
func TestWorkload(t *testing.T) {
	r := fillJournal(t, 20_000)
	if _, err := Seal(r.dir, SealOptions{ProcessEnd: EndInterrupted}); err != nil {
		t.Fatal(err)
	}
	d := load(t, r.dir)
	valid(t, d)
	if n := len(d.Buffers) + len(d.Queues); n != 20_000 {
		t.Errorf("%d events", n)
	}
}

// BenchmarkSeal seals a journal of 500,000 buffer and queue events.
func BenchmarkSeal(b *testing.B) {
	const n = 500_000
	r := fillJournal(b, n)
	var bytes int64
	dir := filepath.Join(b.TempDir(), "seal.hw")
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(r.dir))); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if _, err := Seal(dir, SealOptions{ProcessEnd: EndFinished}); err != nil {
			b.Fatal(err)
		}
	}
	for _, table := range []string{"buffers", "queues"} {
		info, err := os.Stat(tablePath(dir, table))
		if err != nil {
			b.Fatal(err)
		}
		bytes += info.Size()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(bytes)/n, "B/event")
}

// BenchmarkRead reads the events back with the iterators.
func BenchmarkRead(b *testing.B) {
	const n = 500_000
	r := fillJournal(b, n)
	if _, err := Seal(r.dir, SealOptions{}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		t, err := Open(r.dir)
		if err != nil {
			b.Fatal(err)
		}
		rows := 0
		for _, err := range t.Buffers() {
			if err != nil {
				b.Fatal(err)
			}
			rows++
		}
		for _, err := range t.Queues() {
			if err != nil {
				b.Fatal(err)
			}
			rows++
		}
		if t.Close(); rows != n {
			b.Fatal(fmt.Sprint(rows, " rows"))
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
