//go:build cgo && linux

package device

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark/logger"
)

// The tests run against the twin that `make native-cpu` leaves in bin/, or against the library that
// HIGHWATER_TEST_NATIVE names: on a machine with a GPU the same tests, compiled by `go test -c`, run
// against the CUDA library, with larger sizes:
//
//	HIGHWATER_TEST_NATIVE=…/libhighwater_native.so HIGHWATER_TEST_LOG=22 ./device.test -test.v
const (
	testLibraryEnv = "HIGHWATER_TEST_NATIVE"
	testLogEnv     = "HIGHWATER_TEST_LOG" // largest size, as a logarithm
	testSeedEnv    = "HIGHWATER_TEST_SEED"
)

func TestMain(m *testing.M) {
	logger.Disable() // gnark's, which writes to standard output
	os.Exit(m.Run())
}

// theLibrary is opened once: it stays loaded anyway. It is a copy, because `make native-cpu` beside a
// test would write into the file that the test has mapped.
var theLibrary = sync.OnceValues(func() (*Library, error) {
	dir, err := os.MkdirTemp("", "highwater-native-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	bytes, err := os.ReadFile(testLibraryPath())
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, filepath.Base(testLibraryPath()))
	if err := os.WriteFile(path, bytes, 0o700); err != nil {
		return nil, err
	}
	return Open(path)
})

func testLibraryPath() string {
	if path := os.Getenv(testLibraryEnv); path != "" {
		return path
	}
	path, _ := filepath.Abs("../../bin/libhighwater_native_cpu.so")
	return path
}

// library is the library under test.
func library(t testing.TB) *Library {
	t.Helper()
	if _, err := os.Stat(testLibraryPath()); err != nil && os.Getenv(testLibraryEnv) == "" {
		t.Skip("no device library to test: `make native-cpu` builds the twin")
	}
	l, err := theLibrary()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// newContext makes a context, which the test's end closes; it checks that all of the arena that the
// test used was given back.
func newContext(t testing.TB, c Config) *Context {
	t.Helper()
	if c.ArenaBytes == 0 && !large() {
		c.ArenaBytes = 256 << 20
	}
	ctx, err := library(t).NewContext(c)
	if err != nil {
		t.Fatal(err)
	}
	before, err := ctx.Memory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		after, err := ctx.Memory()
		if err != nil || after.ArenaUsed != before.ArenaUsed || after.PoolUsed != 0 || after.Registered != 0 {
			t.Errorf("not everything was given back: %+v, before %+v, %v", after, before, err)
		}
		ctx.Close()
	})
	return ctx
}

// maxLog is the largest size that the tests take.
func maxLog(small int) int {
	if n, err := strconv.Atoi(os.Getenv(testLogEnv)); err == nil {
		return n
	}
	return small
}

func large() bool { return maxLog(0) > 14 }

// testRand is seeded by the test's name and HIGHWATER_TEST_SEED: a failure repeats.
func testRand(t testing.TB) *rand.Rand {
	seed, _ := strconv.ParseUint(os.Getenv(testSeedEnv), 10, 64)
	var name uint64
	for _, c := range t.Name() {
		name = name*31 + uint64(c)
	}
	t.Logf("seed %d (%s)", seed, testSeedEnv)
	return rand.New(rand.NewPCG(seed, name))
}

// randomFr is a uniform scalar.
func randomFr(r *rand.Rand) (e fr.Element) {
	var b [48]byte
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	e.SetBytes(b[:])
	return e
}

func randomFrs(r *rand.Rand, n int) []fr.Element {
	v := make([]fr.Element, n)
	inParts(r, v, func(r *rand.Rand, v []fr.Element) {
		for i := range v {
			v[i] = randomFr(r)
		}
	})
	return v
}

// inParts fills v part by part, several at once, each part from a seed of its own, so that the same
// seed gives the same values on every machine.
func inParts(r *rand.Rand, v []fr.Element, fill func(r *rand.Rand, v []fr.Element)) {
	const part = 1 << 14
	seed := r.Uint64()
	var wait sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for from := 0; from < len(v); from += part {
		free <- struct{}{}
		wait.Go(func() {
			fill(rand.New(rand.NewPCG(seed, uint64(from))), v[from:min(from+part, len(v))])
			<-free
		})
	}
	wait.Wait()
}
