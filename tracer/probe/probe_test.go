package probe

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// kept is a sink that remembers each metric's latest value and how many came.
type kept struct {
	mu    sync.Mutex
	value map[string]float64
	count int
}

func (k *kept) Sample(metric string, value float64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.value == nil {
		k.value = map[string]float64{}
	}
	k.value[metric] = value
	k.count++
}

func (k *kept) clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.value, k.count = nil, 0
}

func (k *kept) get(metric string) (float64, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, ok := k.value[metric]
	return v, ok
}

func (k *kept) samples() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.count
}

// manual samples only when Tick is called: its period is longer than any test.
var manual = Options{Hz: 0.001}

func start(t testing.TB, sink Sink, opts Options) *Probe {
	t.Helper()
	p, err := Start(sink, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop() })
	return p
}

// touch maps and writes n bytes.
func touch(t *testing.T, n int) []byte {
	t.Helper()
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < n; i += os.Getpagesize() {
		m[i] = 1
	}
	return m
}

// TestOwnProcess checks that memory this process touches shows up where it should.
func TestOwnProcess(t *testing.T) {
	debug.FreeOSMemory()                // or what other tests left goes back meanwhile, against what grows
	if err := ResetHWM(0); err != nil { // other tests of this process came before
		t.Fatal(err)
	}
	var before, after kept
	p := start(t, &before, manual)
	const size = 64 << 20
	m := touch(t, size)
	defer unix.Munmap(m)
	p.mu.Lock()
	p.sink = &after
	p.mu.Unlock()
	p.Tick()

	grown := map[string]float64{
		RSS: size * 0.9, RSSAnon: size * 0.9, HWM: size * 0.9, "process.memory.virtual": size,
		CPUUser: 0, CPUSystem: 0, FaultsMajor: 0, GCCycles: 0, "system.cpu.time.user": 0,
	}
	grown[FaultsMinor] = 1 // huge pages may leave very few
	for metric, want := range grown {
		a, okA := before.get(metric)
		b, okB := after.get(metric)
		if !okA || !okB || b-a < want {
			t.Errorf("%s went from %v (%v) to %v (%v), want a growth of at least %v", metric, a, okA, b, okB, want)
		}
	}
	used, ok := after.get(GoUsed)
	if rss, _ := after.get(RSS); !ok || used <= 0 || used > rss {
		t.Errorf("%s is %v of %v resident", GoUsed, used, rss)
	}
}

// TestEveryMetricIsSampledOrAbsent checks that no metric is silently missing, and none both.
func TestEveryMetricIsSampledOrAbsent(t *testing.T) {
	var k kept
	p := start(t, &k, manual)
	absent := map[string]bool{}
	for _, a := range p.Absent() {
		absent[a.Metric] = true
		if a.Reason == "" {
			t.Errorf("%s is absent without a reason", a.Metric)
		}
	}
	for _, m := range Metrics() {
		if _, sampled := k.get(m.Name); sampled == absent[m.Name] {
			t.Errorf("%s: sampled %v, absent %v", m.Name, sampled, absent[m.Name])
		}
	}
}

// TestTickAllocatesNothing is the promise that sampling does not disturb what it measures.
func TestTickAllocatesNothing(t *testing.T) {
	p := start(t, sinkFunc(func(string, float64) {}), manual)
	if n := testing.AllocsPerRun(200, p.Tick); n != 0 {
		t.Errorf("a tick makes %v allocations", n)
	}
}

// TestPeriod checks that ticks come by themselves, and that Stop ends them and counts them.
func TestPeriod(t *testing.T) {
	var k kept
	p := start(t, &k, Options{Hz: 1000})
	first := k.samples()
	const patience = 3 * time.Minute // only what hangs waits so long
	for deadline := time.Now().Add(patience); k.samples() < 5*first; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d samples after %v", k.samples(), patience)
		}
	}
	s := p.Stop()
	if s.Ticks < 5 || s.MeanNanos <= 0 || s.MaxWallNanos <= 0 || s.ReadErrors != 0 {
		t.Errorf("Stop = %+v", s)
	}
	total := k.samples()
	p.Tick()
	if again := p.Stop(); again != s || k.samples() != total {
		t.Errorf("after Stop: %+v and %d samples, before %+v and %d", again, k.samples(), s, total)
	}
}

// TestSlowFilesAreReadLessOften checks the stride of a fast probe: costly files at slowHz, the cheapest at every tick.
func TestSlowFilesAreReadLessOften(t *testing.T) {
	seen := map[string]int{}
	p := start(t, sinkFunc(func(metric string, _ float64) { seen[metric]++ }), manual)
	p.stride = 4
	clear(seen)
	for range 8 {
		p.tick(false)
	}
	if seen[RSS] != 8 || seen[MemAvailable] != 2 {
		t.Errorf("8 ticks read %s %d times and %s %d times, want 8 and 2", RSS, seen[RSS], MemAvailable, seen[MemAvailable])
	}
}

// TestMain is also the child of TestOtherProcess: a process that says that it is there, and waits for its
// standard input to close.
func TestMain(m *testing.M) {
	if os.Getenv("PROBE_TEST_CHILD") != "" {
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestOtherProcess samples a child, and its death: what cannot be read any more is counted and not sampled.
func TestOtherProcess(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "PROBE_TEST_CHILD=1")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	// Right after its start a process has a page or two, which the kernel may not have counted yet.
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("child says %q, %v", line, err)
	}
	var k kept
	p := start(t, &k, Options{Hz: 0.001, PID: child.Process.Pid})
	for _, metric := range []string{RSS, HWM, FaultsMinor, CPUUser} {
		if v, ok := k.get(metric); !ok || v < 0 || metric == RSS && v == 0 {
			t.Errorf("%s of a living child is %v, %v", metric, v, ok)
		}
	}
	if _, ok := k.get(GoUsed); ok {
		t.Errorf("%s of another process was sampled", GoUsed)
	}
	in.Close()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	k.clear()
	p.Tick()
	if v, ok := k.get(RSS); ok {
		t.Errorf("%s of a dead child is %v", RSS, v)
	}
	if s := p.Stop(); s.ReadErrors == 0 {
		t.Errorf("reading a dead child: %+v", s)
	}
}

// TestStartRefuses checks the two reasons for Start to fail.
func TestStartRefuses(t *testing.T) {
	_, err := Start(&kept{}, Options{Hz: math.NaN(), PID: -1})
	if err == nil || !strings.Contains(err.Error(), "Hz") || !strings.Contains(err.Error(), "PID") {
		t.Errorf("senseless options: %v, want both named", err)
	}
	if _, err := Start(&kept{}, Options{PID: 1<<22 + 1}); err == nil { // above the kernel's highest
		t.Error("a process that does not exist was accepted")
	}
}

// TestHighWaterMark checks that a reset forgets an earlier peak and that a later one is exact.
func TestHighWaterMark(t *testing.T) {
	const size = 64 << 20
	debug.FreeOSMemory() // or what other tests left goes back meanwhile, against what grows
	if err := unix.Munmap(touch(t, size)); err != nil {
		t.Fatal(err)
	}
	before := mustRead(t, ReadHWM)
	if err := ResetHWM(0); err != nil {
		t.Fatal(err)
	}
	reset := mustRead(t, ReadHWM)
	if before-reset < size/2 {
		t.Errorf("reset took the mark from %d to %d, want %d less", before, reset, size)
	}
	if err := unix.Munmap(touch(t, size)); err != nil {
		t.Fatal(err)
	}
	if peak, rss := mustRead(t, ReadHWM), mustRead(t, ReadRSS); peak-reset < size*9/10 || peak-rss < size/2 {
		t.Errorf("after touching %d: mark %d from %d, resident %d", size, peak, reset, rss)
	}
	if _, err := ReadHWM(1<<22 + 1); err == nil {
		t.Error("a process that does not exist has a mark")
	}
	if err := ResetHWM(1<<22 + 1); err == nil {
		t.Error("a process that does not exist was reset")
	}
}

func mustRead(t *testing.T, read func(int) (int64, error)) int64 {
	t.Helper()
	n, err := read(0)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestMetricsTable checks the table for what its readers rely on.
func TestMetricsTable(t *testing.T) {
	var names []string
	for i, m := range Metrics() {
		names = append(names, m.Name)
		if m.Unit == "" || m.Source == "" || !strings.HasSuffix(m.Doc, ".") || m.Kind != Gauge && m.Kind != Counter {
			t.Errorf("row %d: %+v", i, m)
		}
	}
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	if len(slices.Compact(sorted)) != len(names) {
		t.Error("a name occurs twice")
	}
	for _, name := range []string{
		RSS, RSSAnon, RSSFile, RSSShmem, HWM, Swap, FaultsMinor, FaultsMajor, CPUUser, CPUSystem, Steal,
		MemAvailable, CgroupUsage, CgroupPeak, CgroupLimit, CgroupOOMs, HostOOMs, GoUsed, GoHeapLive, GCCycles,
	} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is no row", name)
		}
	}
}

// TestHostInfo checks the live machine's description for what every Linux gives.
func TestHostInfo(t *testing.T) {
	h := HostInfo(Options{})
	if h.Kernel == "" || h.CPUs < h.AllowedCPUs || h.AllowedCPUs < 1 || h.RAMBytes < 64<<20 {
		t.Errorf("HostInfo = %+v", h)
	}
	if l := EffectiveLimit(Options{}); l.Bytes <= 0 || l.Bytes > h.RAMBytes || l.Kind == "" {
		t.Errorf("EffectiveLimit = %+v of %d", l, h.RAMBytes)
	}
}

// BenchmarkTick is one reading of everything, into a sink that drops it.
func BenchmarkTick(b *testing.B) {
	p := start(b, sinkFunc(func(string, float64) {}), manual)
	b.ReportAllocs()
	for b.Loop() {
		p.tick(true)
	}
}

// BenchmarkFastTick leaves the host's files out.
func BenchmarkFastTick(b *testing.B) {
	p := start(b, sinkFunc(func(string, float64) {}), manual)
	p.stride = math.MaxInt64
	b.ReportAllocs()
	for b.Loop() {
		p.tick(false)
	}
}

// TestPace wants a time that is plausible on any machine, at every tick: a multiplication takes
// between a fiftieth and 1000 ns.
func TestPace(t *testing.T) {
	var k kept
	p := start(t, &k, manual)
	for range 3 {
		k.clear()
		p.Tick()
		const muls = 8 * paceRounds
		if ns, ok := k.get(Pace); !ok || ns < muls/50 || ns > muls*1000 {
			t.Errorf("%d multiplications took %v ns (sampled: %v)", muls, ns, ok)
		}
	}
}
