package groth16

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	curve "github.com/consensys/gnark-crypto/ecc/bls12-381"
	bls12381 "github.com/consensys/gnark/backend/groth16/bls12-381"
)

// The cache file, all integers little-endian:
//
//	0     magic "HWKEYS\r\n"
//	8     version u32, then u32 zero
//	16    circuit, 32 bytes padded with zeros
//	48    log size u64, seed u64
//	64    constraints, wires, inputs, coefficients, words, domain, public, a, b: u64 each
//	136   SHA-256 of each section, in the order of the layout
//	4064  SHA-256 of all bytes before
//	4096  sections, each at a multiple of 4096, as they lie in memory
//
// Points are affine Montgomery limbs, so that loading is reading. Sections: fixed points (alpha,
// beta, delta in G1, beta, delta, gamma in G2, the verifying key's K), the program, its
// coefficients, A, B, K, Z, B in G2, and the masks of A and B.
const (
	cacheMagic = "HWKEYS\r\n"
	// cacheVersion is raised when the layout changes, or a circuit, or how gnark compiles one: a
	// file of another version is not read.
	cacheVersion   = 1
	cacheAlign     = 4096
	maxCircuitName = 32
	offsetVersion  = 8
	offsetID       = 16
	offsetCounts   = 64
	offsetDigests  = 136
	offsetSum      = cacheAlign - sha256.Size
	cacheSections  = 10
	// maxCount bounds every count of a header, far inside an int64 once multiplied by a point's
	// size.
	maxCount = 1 << 34
	// maxDomain is the largest domain that a file may claim.
	maxDomain = 1 << 32
)

// cacheHeader is the decoded header.
type cacheHeader struct {
	id      CacheID
	system  programSize
	words   int
	key     keySize
	digests [cacheSections][sha256.Size]byte
}

// cacheSection is where a section lies.
type cacheSection struct {
	name         string
	offset, size int64
}

// layout places the sections by their sizes.
func (h *cacheHeader) layout() []cacheSection {
	names := [cacheSections]string{
		"fixed", "program", "coefficients", "a", "b_g1", "k", "z", "b_g2", "mask a", "mask b",
	}
	sizes := append([]int64{
		3*g1Bytes + 3*g2Bytes + int64(h.key.public)*g1Bytes,
		int64(h.words) * wordBytes, int64(h.system.coefficients) * scalarBytes,
	}, h.key.sections()...)
	layout := make([]cacheSection, cacheSections)
	offset := int64(cacheAlign)
	for i, size := range sizes {
		layout[i] = cacheSection{name: names[i], offset: offset, size: size}
		offset += (size + cacheAlign - 1) / cacheAlign * cacheAlign
	}
	return layout
}

// fileBytes is the whole file's size.
func (h *cacheHeader) fileBytes() int64 {
	last := h.layout()[cacheSections-1]
	return last.offset + (last.size+cacheAlign-1)/cacheAlign*cacheAlign
}

// counts lists the header's counts in their order in the file.
func (h *cacheHeader) counts() [9]*int {
	return [9]*int{
		&h.system.constraints, &h.system.wires, &h.system.inputs, &h.system.coefficients, &h.words,
		&h.key.domain, &h.key.public, &h.key.a, &h.key.b,
	}
}

func (h *cacheHeader) encode() []byte {
	buf := make([]byte, cacheAlign)
	copy(buf, cacheMagic)
	binary.LittleEndian.PutUint32(buf[offsetVersion:], cacheVersion)
	copy(buf[offsetID:], h.id.Circuit)
	binary.LittleEndian.PutUint64(buf[offsetID+maxCircuitName:], uint64(h.id.LogSize))
	binary.LittleEndian.PutUint64(buf[offsetID+maxCircuitName+8:], h.id.Seed)
	for i, n := range h.counts() {
		binary.LittleEndian.PutUint64(buf[offsetCounts+8*i:], uint64(*n))
	}
	for i := range h.digests {
		copy(buf[offsetDigests+sha256.Size*i:], h.digests[i][:])
	}
	sum := sha256.Sum256(buf[:offsetSum])
	copy(buf[offsetSum:], sum[:])
	return buf
}

// decode reads a header; a reason says why it cannot be trusted, and where.
func (h *cacheHeader) decode(buf []byte) (offset int64, reason string) {
	if string(buf[:len(cacheMagic)]) != cacheMagic {
		return 0, "it is not a key cache of highwater"
	}
	if v := binary.LittleEndian.Uint32(buf[offsetVersion:]); v != cacheVersion {
		return offsetVersion,
			fmt.Sprintf("its version is %d, this program reads version %d", v, cacheVersion)
	}
	if sha256.Sum256(buf[:offsetSum]) != [sha256.Size]byte(buf[offsetSum:]) {
		return offsetSum, "checksum of the header is wrong"
	}
	name := buf[offsetID : offsetID+maxCircuitName]
	for len(name) > 0 && name[len(name)-1] == 0 {
		name = name[:len(name)-1]
	}
	h.id = CacheID{
		Circuit: string(name),
		LogSize: int(binary.LittleEndian.Uint64(buf[offsetID+maxCircuitName:])),
		Seed:    binary.LittleEndian.Uint64(buf[offsetID+maxCircuitName+8:]),
	}
	for i, n := range h.counts() {
		v := binary.LittleEndian.Uint64(buf[offsetCounts+8*i:])
		if v > maxCount {
			return int64(offsetCounts + 8*i), fmt.Sprintf("count %d is beyond all limits", v)
		}
		*n = int(v)
	}
	h.key.wires = h.system.wires
	for i := range h.digests {
		copy(h.digests[i][:], buf[offsetDigests+sha256.Size*i:])
	}
	return offsetCounts, h.implausible()
}

// implausible says how the counts contradict each other, "" if they do not.
func (h *cacheHeader) implausible() string {
	s, k := h.system, h.key
	switch {
	case s.constraints < 1 || k.domain > maxDomain || k.domain != 1<<bits.Len(uint(s.constraints-1)):
		return fmt.Sprintf("%d constraints with a domain of %d", s.constraints, k.domain)
	case k.public < 1 || k.public > s.inputs || s.inputs > s.wires:
		return fmt.Sprintf("%d public of %d known of %d wires", k.public, s.inputs, s.wires)
	case k.a > s.wires || k.b > s.wires:
		return fmt.Sprintf("queries of %d and %d points for %d wires", k.a, k.b, s.wires)
	case s.coefficients < 1 || h.words < 1:
		return "it has no constraints"
	}
	return ""
}

// pointBytes views points as their bytes in memory.
func pointBytes[P curve.G1Affine | curve.G2Affine](p []P) []byte {
	var zero P
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(p))), len(p)*int(unsafe.Sizeof(zero)))
}

// encodeFixed is the section of the few points that belong to no query.
func encodeFixed(k *Key) []byte {
	out := append([]byte(nil), pointBytes([]curve.G1Affine{k.alpha, k.beta, k.delta})...)
	out = append(out, pointBytes([]curve.G2Affine{k.beta2, k.delta2, k.verifying.G2.Gamma})...)
	return append(out, pointBytes(k.verifying.G1.K)...)
}

// decodeFixed is the inverse; it proves that each point is in its group.
func decodeFixed(k *Key, section []byte) error {
	g1, g2 := make([]curve.G1Affine, 3+k.size.public), make([]curve.G2Affine, 3)
	n := copy(pointBytes(g1[:3]), section)
	n += copy(pointBytes(g2), section[n:])
	copy(pointBytes(g1[3:]), section[n:])
	for i := range g1 {
		// K of a public wire that occurs nowhere is infinity.
		if !g1[i].IsInfinity() && !g1[i].IsInSubGroup() {
			return errors.New("a fixed point is not in G1")
		}
	}
	for i := range g2 {
		if !g2[i].IsInSubGroup() {
			return errors.New("a fixed point is not in G2")
		}
	}
	k.alpha, k.beta, k.delta = g1[0], g1[1], g1[2]
	k.beta2, k.delta2 = g2[0], g2[1]
	k.verifying = &bls12381.VerifyingKey{}
	k.verifying.G2.Gamma = g2[2]
	k.verifying.G1.K = g1[3:]
	return nil
}
