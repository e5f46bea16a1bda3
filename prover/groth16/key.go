package groth16

import (
	"errors"
	"fmt"
	"math/bits"

	curve "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
	gnarkgroth16 "github.com/consensys/gnark/backend/groth16"
	bls12381 "github.com/consensys/gnark/backend/groth16/bls12-381"
	"github.com/consensys/gnark/backend/witness"

	"highwater/prover/hostmem"
	"highwater/tracer"
	"highwater/tracer/trace"
)

// domainTableBytes is what gnark-crypto's precomputed domain holds on the Go heap a point: twiddles
// and coset tables, each forward and inverse.
const domainTableBytes = 4 * scalarBytes

// keySize is the shape of a key.
type keySize struct {
	domain, wires, public int
	a, b                  int // points of the A and B queries: those of wires that occur there
}

// sections lists what a key keeps in mmap memory, in the order of the cache file.
func (s keySize) sections() []int64 {
	mask := int64(bitsetWords(s.wires)) * 8
	return []int64{
		int64(s.a) * g1Bytes, int64(s.b) * g1Bytes,
		int64(s.wires-s.public) * g1Bytes, int64(s.domain-1) * g1Bytes,
		int64(s.b) * g2Bytes, mask, mask,
	}
}

// Key is a proving key in mmap memory with its verifying key. It is read-only once built.
type Key struct {
	size    keySize
	rec     *tracer.Recorder
	regions []*hostmem.Region // in the order of keySize.sections
	tables  tracer.Buffer     // the domain's tables, on the Go heap

	domain               *fft.Domain
	a, b, k, z           []curve.G1Affine // z in bit-reversed order, as the NTTs leave h
	b2                   []curve.G2Affine
	infinityA, infinityB bitset // wires that do not occur in A, in B
	alpha, beta, delta   curve.G1Affine
	beta2, delta2        curve.G2Affine
	verifying            *bls12381.VerifyingKey
}

// newKey maps a key of the given size, its points still zero.
func newKey(env Env, size keySize) (*Key, error) {
	k := &Key{size: size, rec: env.Mem.Rec}
	for _, n := range size.sections() {
		r, err := env.Mem.Alloc(trace.ClassKey, max(n, 1), tracer.NoOwner)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("map key: %w", err), k.Free())
		}
		k.regions = append(k.regions, r)
	}
	g1 := func(i, n int) []curve.G1Affine { return hostmem.Of[curve.G1Affine](k.regions[i], n) }
	k.a, k.b, k.k, k.z = g1(0, size.a), g1(1, size.b), g1(2, size.wires-size.public), g1(3, size.domain-1)
	k.b2 = hostmem.Of[curve.G2Affine](k.regions[4], size.b)
	k.infinityA = hostmem.Of[uint64](k.regions[5], bitsetWords(size.wires))
	k.infinityB = hostmem.Of[uint64](k.regions[6], bitsetWords(size.wires))
	if !env.NoTables {
		k.makeTables()
	}
	return k, nil
}

// makeTables makes the tables of the CPU's NTTs where they are missing.
func (k *Key) makeTables() {
	if k.domain != nil {
		return
	}
	k.domain = fft.NewDomain(uint64(k.size.domain))
	k.tables = k.rec.Alloc(tracer.BufferSpec{
		Class: trace.ClassKey, Space: trace.SpaceHost, Device: -1, Estimated: true, Owner: tracer.NoOwner,
		CapacityBytes: k.tableBytes(), ResidentBytes: k.tableBytes(),
	})
}

// Queries are the points of a key and which wires they belong to. The slices are the key's own.
type Queries struct {
	Domain, Wires, Public int
	Z                     []curve.G1Affine // Domain - 1, in bit-reversed order, as the NTTs leave h
	K                     []curve.G1Affine // Wires - Public
	A, B                  []curve.G1Affine // of the wires that are not in InfinityA, InfinityB
	B2                    []curve.G2Affine
	InfinityA, InfinityB  []uint64 // a bit a wire
}

// Queries are the key's points.
func (k *Key) Queries() Queries {
	return Queries{Domain: k.size.domain, Wires: k.size.wires, Public: k.size.public,
		Z: k.z, K: k.k, A: k.a, B: k.b, B2: k.b2, InfinityA: k.infinityA, InfinityB: k.infinityB}
}

// CheckStart says why a start with this key cannot take the assignment.
func (k *Key) CheckStart(a *Assignment) error {
	if !a.Live() {
		return errors.New("start proof: assignment is freed")
	}
	if err := k.fits(a.system); err != nil {
		return fmt.Errorf("start proof: %w", err)
	}
	return nil
}

func (k *Key) tableBytes() int64 { return int64(k.size.domain) * domainTableBytes }

// Bytes is the memory that the key occupies, the domain's tables on the Go heap included.
func (k *Key) Bytes() int64 {
	if k.domain == nil {
		return capacityOf(k.regions)
	}
	return capacityOf(k.regions) + k.tableBytes()
}

// Free gives the memory back. It is safe to call twice.
func (k *Key) Free() error {
	regions, tables := k.regions, k.tables
	*k = Key{}
	tables.Free()
	return freeAll(regions...)
}

// checkMasks proves that the masks leave as many wires as the queries have points.
func (k *Key) checkMasks() error {
	for _, m := range []struct {
		name   string
		mask   bitset
		points int
	}{{"A", k.infinityA, k.size.a}, {"B", k.infinityB, k.size.b}} {
		absent := 0
		for _, w := range m.mask {
			absent += bits.OnesCount64(w)
		}
		if tail := k.size.wires % 64; tail != 0 && m.mask[len(m.mask)-1]>>tail != 0 {
			return fmt.Errorf("mask of %s names wires beyond the last", m.name)
		}
		if k.size.wires-absent != m.points {
			return fmt.Errorf("mask of %s leaves %d wires for %d points", m.name, k.size.wires-absent, m.points)
		}
	}
	return nil
}

// fits says whether the key is one of the system.
func (k *Key) fits(s *System) error {
	if k.size.domain != s.DomainSize() || k.size.wires != s.size.wires || k.size.public != s.public {
		return fmt.Errorf("key is for a domain of %d with %d wires, %d public; the system has %d, %d and %d",
			k.size.domain, k.size.wires, k.size.public, s.DomainSize(), s.size.wires, s.public)
	}
	return nil
}

// Proof is a proof in gnark's type; Bytes is its canonical (compressed) encoding.
type Proof struct {
	bls12381.Proof
	encoded []byte
}

// Bytes is the proof's canonical (compressed) encoding. It must not be changed.
func (p *Proof) Bytes() []byte { return p.encoded }

// Verify checks proof with gnark's own verifier.
func (k *Key) Verify(proof *Proof, public witness.Witness) error {
	if err := gnarkgroth16.Verify(&proof.Proof, k.verifying, public); err != nil {
		return fmt.Errorf("verify proof: %w", err)
	}
	return nil
}
