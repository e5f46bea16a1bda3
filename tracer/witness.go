package tracer

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"highwater/tracer/journal"
)

// WitnessEnv names the environment variable that stands in for Options.Witness.
const WitnessEnv = "HIGHWATER_WITNESS"

const witnessBytes = 256 * 8

// witness is a shared file of counters, one uint64 a record kind, raised after the journal has
// acknowledged a record. Whoever kills the process reads there what must be found again. It stays
// mapped: an append that is still under way may count in it.
type witness struct{ page []byte }

func openWitness(path string) (*witness, error) {
	if path == "" {
		path = os.Getenv(WitnessEnv)
	}
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open witness: %w", err)
	}
	defer f.Close()
	if err := f.Truncate(witnessBytes); err != nil {
		return nil, fmt.Errorf("open witness: %w", err)
	}
	page, err := unix.Mmap(int(f.Fd()), 0, witnessBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map witness %s: %w", path, err)
	}
	return &witness{page}, nil
}

func (w *witness) count(k journal.Kind) {
	(*atomic.Uint64)(unsafe.Pointer(&w.page[8*int(k)])).Add(1)
}

// ReadWitness reads the counters of a witness file, by record kind.
func ReadWitness(path string) (map[journal.Kind]int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read witness: %w", err)
	}
	if len(b) != witnessBytes {
		return nil, fmt.Errorf("read witness %s: %d bytes, not %d", path, len(b), witnessBytes)
	}
	counts := map[journal.Kind]int64{}
	for k := range 256 {
		if n := binary.LittleEndian.Uint64(b[8*k:]); n > 0 {
			counts[journal.Kind(k)] = int64(n)
		}
	}
	return counts, nil
}
