package groth16

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"highwater/prover/circuit"
	"highwater/prover/hostmem"
)

var mimcID = CacheID{Circuit: circuit.MiMC, LogSize: 10, Seed: 11}

// saved is a rig's cache file in a directory of its own, and its bytes.
func saved(t testing.TB, r *rig, id CacheID) (dir string, content []byte) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "keys")
	path, err := SaveCache(dir, id, r.system, r.key)
	if err != nil {
		t.Fatal(err)
	}
	if content, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return dir, content
}

func TestCacheGivesBackSystemAndKey(t *testing.T) {
	r := newRig(t, circuit.MiMC, 10)
	dir, content := saved(t, r, mimcID)
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 || names[0].Name() != "mimc-10-seed11-v1.hwkeys" {
		t.Errorf("cache directory holds %v, %v", names, err)
	}
	env := Env{Mem: &hostmem.Allocator{}}
	s, k, err := LoadCache(t.Context(), env, dir, mimcID)
	if err != nil {
		t.Fatal(err)
	}
	loaded := &rig{env: env, circuit: r.circuit, system: s, key: k, backend: NewCPU(k)}
	p := circuit.Partition{Seed: 9}
	proof := loaded.prove(t, p, true, 0)
	if !bytes.Equal(proof.Bytes(), r.prove(t, p, true, 0).Bytes()) {
		t.Error("the loaded key proves differently")
	}
	if err := k.Verify(proof, public(t, r.witness(t, p))); err != nil {
		t.Error(err)
	}
	if _, again := saved(t, loaded, mimcID); !bytes.Equal(content, again) {
		t.Error("saving the loaded key gives another file")
	}
	if err := errors.Join(k.Free(), k.Free(), s.Free(), s.Free()); err != nil {
		t.Error(err)
	}
	wantNothingMapped(t, env)
}

// Every damage is a *CacheError that names the file and says what is wrong, and nothing stays
// mapped.
func TestDamagedCacheIsRefused(t *testing.T) {
	r := newRig(t, circuit.MiMC, 10)
	dir, good := saved(t, r, mimcID)
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte { b[at] ^= 1; return b }
	}
	header := cacheHeader{}
	if _, reason := header.decode(good); reason != "" {
		t.Fatal(reason)
	}
	for _, tc := range []struct {
		name   string
		damage func([]byte) []byte
		want   string
	}{
		{"empty", func(b []byte) []byte { return nil }, "ends inside the header"},
		{"short header", func(b []byte) []byte { return b[:100] }, "ends inside the header"},
		{"header only", func(b []byte) []byte { return b[:cacheAlign] }, "its header wants"},
		{"truncated", func(b []byte) []byte { return b[:len(b)-1] }, "its header wants"},
		{"appended", func(b []byte) []byte { return append(b, 0) }, "its header wants"},
		{"foreign", func(b []byte) []byte { copy(b, "PAR1"); return b }, "not a key cache"},
		{"other version", flip(offsetVersion), "reads version 1"},
		{"flipped in the header", flip(offsetCounts), "checksum of the header"},
		{"flipped in the fixed points", flip(int(header.layout()[0].offset)), "checksum of section fixed"},
		{"flipped in the program", flip(int(header.layout()[1].offset)), "checksum of section program"},
		{"flipped in z", flip(int(header.layout()[6].offset) + 7), "checksum of section z"},
		{"flipped in the last mask", flip(int(header.layout()[9].offset)), "checksum of section mask b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := loadBytes(t, dir, tc.damage(slices.Clone(good)), mimcID)
			var bad *CacheError
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), mimcID.FileName()) {
				t.Errorf("%v, want a *CacheError with %q and the file's name", err, tc.want)
			}
		})
	}
	if err := loadBytes(t, dir, good, mimcID); err != nil {
		t.Errorf("the undamaged file: %v", err)
	}
}

// loadBytes loads content as the cache file of id.
func loadBytes(t testing.TB, dir string, content []byte, id CacheID) error {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, id.FileName()), content, 0o644); err != nil {
		t.Fatal(err)
	}
	env := Env{Mem: &hostmem.Allocator{}}
	s, k, err := LoadCache(context.Background(), env, dir, id)
	if err == nil {
		err = errors.Join(k.Free(), s.Free())
	}
	wantNothingMapped(t, env)
	return err
}

func TestCacheOfAnotherIdentityIsRefused(t *testing.T) {
	r := newRig(t, circuit.MiMC, 10)
	dir, content := saved(t, r, mimcID)
	var bad *CacheError
	for _, id := range []CacheID{
		{Circuit: circuit.MiMC, LogSize: 10, Seed: 12}, {Circuit: circuit.MiMC, LogSize: 11, Seed: 11}, {Circuit: circuit.Label, LogSize: 10, Seed: 11},
	} {
		if err := loadBytes(t, dir, content, id); !errors.As(err, &bad) || bad.Offset != offsetID {
			t.Errorf("load as %+v: %v, want a *CacheError", id, err)
		}
	}
	absent := CacheID{Circuit: circuit.MiMC, LogSize: 20}
	if _, _, err := LoadCache(t.Context(), r.env, dir, absent); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("load an absent file: %v, want fs.ErrNotExist", err)
	}
	if _, err := SaveCache(dir, CacheID{Circuit: "../mimc"}, r.system, r.key); err == nil {
		t.Error("a circuit name with a separator is accepted")
	}
}

func TestCancelledLoadLeavesNothing(t *testing.T) {
	r := newRig(t, circuit.MiMC, 10)
	dir, _ := saved(t, r, mimcID)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env := Env{Mem: &hostmem.Allocator{}}
	if _, _, err := LoadCache(ctx, env, dir, mimcID); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	wantNothingMapped(t, env)
}

// A change of a circuit, or of how it compiles, must come with a new cacheVersion: else old files
// would be used for new circuits.
func TestCircuitsAreThoseOfThisCacheVersion(t *testing.T) {
	if cacheVersion != 1 {
		t.Fatal("put the new version's fingerprints into this test")
	}
	for _, tc := range []struct {
		name    string
		logSize int
		want    uint64
	}{{circuit.Label, 15, 0x586cc853a4f1ac96}, {circuit.MiMC, 10, 0x43182ea7f6f27532}} {
		c, err := circuit.New(tc.name, tc.logSize)
		if err != nil {
			t.Fatal(err)
		}
		env := Env{Mem: &hostmem.Allocator{}}
		s, err := Compile(t.Context(), env, c.Shape())
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.New()
		for _, r := range s.regions {
			sum.Write(r.Bytes())
		}
		if got := binary.BigEndian.Uint64(sum.Sum(nil)); got != tc.want {
			t.Errorf("%s compiles to fingerprint %#x, not to %#x: raise cacheVersion", tc.name, got, tc.want)
		}
		if err := s.Free(); err != nil {
			t.Error(err)
		}
	}
}

// reseal makes every checksum right again, so that fuzzing reaches what checksums protect.
func reseal(content []byte) []byte {
	if len(content) < cacheAlign {
		return content
	}
	sum := sha256.Sum256(content[:offsetSum])
	copy(content[offsetSum:], sum[:])
	var h cacheHeader
	if _, reason := h.decode(content); reason != "" || h.fileBytes() != int64(len(content)) {
		return content
	}
	for i, sec := range h.layout() {
		h.digests[i] = sha256.Sum256(content[sec.offset : sec.offset+sec.size])
	}
	copy(content, h.encode())
	return content
}

// FuzzLoadCache patches a good file at one place; the reader must refuse it or load something whose
// every use is in bounds.
func FuzzLoadCache(f *testing.F) {
	r := newRig(f, circuit.MiMC, 10)
	dir, good := saved(f, r, mimcID)
	var h cacheHeader
	if _, reason := h.decode(good); reason != "" {
		f.Fatal(reason)
	}
	for i := range h.counts() {
		f.Add(uint32(offsetCounts+8*i), []byte{0xff, 0xff, 0xff, 0xff, 3}, true)
	}
	for _, sec := range h.layout() {
		f.Add(uint32(sec.offset), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, true)
		f.Add(uint32(sec.offset+sec.size/2), []byte{1}, false)
	}
	f.Fuzz(func(t *testing.T, at uint32, patch []byte, sealed bool) {
		content := slices.Clone(good)
		copy(content[int(at)%len(content):], patch)
		if sealed {
			content = reseal(content)
		}
		path := filepath.Join(dir, mimcID.FileName())
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		env := Env{Mem: &hostmem.Allocator{}}
		s, k, err := LoadCache(t.Context(), env, dir, mimcID)
		var bad *CacheError
		if err != nil && !errors.As(err, &bad) {
			t.Errorf("%v is no *CacheError", err)
		}
		if err == nil {
			proveAnything(t, &rig{env: env, circuit: r.circuit, system: s, key: k, backend: NewCPU(k)})
			err = errors.Join(k.Free(), s.Free())
			if err != nil {
				t.Error(err)
			}
		}
		wantNothingMapped(t, env)
	})
}

// proveAnything uses a key that may be nonsense: no stage may crash.
func proveAnything(t *testing.T, r *rig) {
	a, err := r.system.Synthesise(t.Context(), r.env, r.witness(t, circuit.Partition{}), SynthesisOptions{})
	if err != nil {
		return
	}
	defer a.Free()
	pending, err := r.backend.Start(t.Context(), r.env, a, StartOptions{})
	if err != nil {
		return
	}
	defer pending.Free()
	if err := r.backend.BG2(t.Context(), r.env, pending, StartOptions{}); err != nil {
		return
	}
	if proof, err := r.key.Finalise(pending, Blinding{}); err == nil {
		_ = r.key.Verify(proof, public(t, r.witness(t, circuit.Partition{})))
	}
}
