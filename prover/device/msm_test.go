//go:build cgo && linux

package device

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc"
	curve "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// testG1 are n points, all different.
func testG1(t testing.TB, n int) []curve.G1Affine {
	_, _, g, _ := curve.Generators()
	return curve.BatchScalarMultiplicationG1(&g, randomFrs(testRand(t), n))
}

func testG2(t testing.TB, n int) []curve.G2Affine {
	_, _, _, g := curve.Generators()
	return curve.BatchScalarMultiplicationG2(&g, randomFrs(testRand(t), n))
}

// logProfiles make the logarithms of points: where points repeat, cancel or are infinite, additions
// in a bucket meet every special case.
var logProfiles = map[string]func(r *rand.Rand, v []fr.Element){
	"random": func(r *rand.Rand, v []fr.Element) { copy(v, randomFrs(r, len(v))) },
	"equal": func(r *rand.Rand, v []fr.Element) {
		x := randomFr(r)
		for i := range v {
			v[i] = x
		}
	},
	"opposite": func(r *rand.Rand, v []fr.Element) {
		x := randomFr(r)
		for i := range v {
			if v[i] = x; i%2 == 1 {
				v[i].Neg(&x)
			}
		}
	},
	"few and infinity": func(r *rand.Rand, v []fr.Element) {
		few := append(randomFrs(r, 3), fr.Element{})
		each(r, v, func(r *rand.Rand) fr.Element { return few[r.IntN(len(few))] })
	},
	"infinity": func(r *rand.Rand, v []fr.Element) { clear(v) },
}

// scalarProfiles are those that a prover meets, and the ones that break sorting by buckets.
var scalarProfiles = map[string]func(r *rand.Rand, v []fr.Element){
	"dense": func(r *rand.Rand, v []fr.Element) { copy(v, randomFrs(r, len(v))) },
	"zero":  func(r *rand.Rand, v []fr.Element) { clear(v) },
	"one":   func(r *rand.Rand, v []fr.Element) { fill(v, fr.One()) },
	"minus one": func(r *rand.Rand, v []fr.Element) {
		one := fr.One()
		fill(v, *new(fr.Element).Neg(&one))
	},
	"one dense value": func(r *rand.Rand, v []fr.Element) { fill(v, randomFr(r)) },
	"label":           func(r *rand.Rand, v []fr.Element) { each(r, v, labelScalar) },
	"edges":           func(r *rand.Rand, v []fr.Element) { each(r, v, edgeScalar) },
}

// each fills v with values of one kind.
func each(r *rand.Rand, v []fr.Element, one func(*rand.Rand) fr.Element) {
	inParts(r, v, func(r *rand.Rand, v []fr.Element) {
		for i := range v {
			v[i] = one(r)
		}
	})
}

func fill(v []fr.Element, x fr.Element) {
	for i := range v {
		v[i] = x
	}
}

// labelScalar is one wire of a SHA-256 circuit, as measured: docs/prover.md.
func labelScalar(r *rand.Rand) (e fr.Element) {
	switch p := r.Float64(); {
	case p < 0.684:
	case p < 0.860:
		e.SetOne()
	case p < 0.987:
		e.SetUint64(2 + r.Uint64N(2))
	case p < 0.997:
		e.SetInt64(-1)
	default:
		e = randomFr(r)
	}
	return e
}

// edgeScalar is near 0, r/2 or r, or has runs of one bits: digits carry there.
func edgeScalar(r *rand.Rand) (e fr.Element) {
	var half fr.Element
	half.SetUint64(2)
	half.Inverse(&half)
	e.SetUint64(r.Uint64N(4))
	switch r.IntN(5) {
	case 0:
		e.Add(&e, &half)
	case 1:
		e.Sub(&half, &e)
	case 2:
		e.Neg(&e)
	case 3:
		e.SetUint64(1<<r.IntN(64) - 1)
	}
	return e
}

// checkMSMs compares MSMs of group with gnark-crypto's.
func checkMSMs[P comparable](t *testing.T, group int, multiples func(logs []fr.Element) []P,
	oracle func(points []P, scalars []fr.Element) P, sizes []int,
) {
	r := testRand(t)
	c := newContext(t, Config{})
	check := func(name string, points []P, scalars []fr.Element, o MSMOptions) {
		t.Helper()
		got, stats, err := MSM(c, group, points, scalars, o)
		if err != nil {
			t.Fatalf("%s, %d points: %v", name, len(points), err)
		}
		if want := oracle(points, scalars); got != want {
			t.Fatalf("%s, %d points, %+v: %v, want %v", name, len(points), stats, got, want)
		}
	}
	for _, n := range sizes { // whatever the size
		logs, scalars := randomFrs(r, n), randomFrs(r, n)
		check("dense", multiples(logs), scalars, MSMOptions{})
	}
	n := 257
	logs, scalars := make([]fr.Element, n), make([]fr.Element, n)
	for points, makeLogs := range logProfiles {
		makeLogs(r, logs)
		p := multiples(logs)
		for name, makeScalars := range scalarProfiles {
			makeScalars(r, scalars)
			check(points+" points, "+name+" scalars", p, scalars, MSMOptions{})
		}
		for _, path := range []int{PathXYZZ, PathAffine} {
			for _, bits := range []int{4, 8, 11} {
				name := fmt.Sprintf("%s points, path %d, %d bits", points, path, bits)
				scalarProfiles["label"](r, scalars)
				check(name, p, scalars, MSMOptions{Path: path, WindowBits: bits})
				scalarProfiles["dense"](r, scalars)
				check(name, p, scalars, MSMOptions{Path: path, WindowBits: bits})
			}
		}
	}
	checkSplit(t, c, group, multiples(randomFrs(r, 100)), randomFrs(r, 100))
}

// checkSplit: an MSM is the sum of those of its halves.
func checkSplit[P comparable](t *testing.T, c *Context, group int, points []P, scalars []fr.Element) {
	t.Helper()
	n := len(points) / 3
	var sums [3]P
	for i, part := range []struct{ from, to int }{{0, n}, {n, len(points)}, {0, len(points)}} {
		var err error
		sums[i], _, err = MSM(c, group, points[part.from:part.to], scalars[part.from:part.to], MSMOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	out := make([]P, 1)
	if err := Points(c, group, PointAdd, sums[:1], sums[1:2], out); err != nil {
		t.Fatal(err)
	}
	if out[0] != sums[2] {
		t.Error("the halves do not add up")
	}
}

func sizes(most int) []int {
	list := []int{0, 1, 2, 3, 31, 32, 33, 100}
	for lg := 7; lg <= most; lg++ {
		list = append(list, 1<<lg-1, 1<<lg)
	}
	return list
}

func TestMSMG1(t *testing.T) {
	_, _, g, _ := curve.Generators()
	checkMSMs(t, G1, func(logs []fr.Element) []curve.G1Affine {
		return curve.BatchScalarMultiplicationG1(&g, logs)
	}, multiExpG1(t), sizes(10))
}

func multiExpG1(t *testing.T) func([]curve.G1Affine, []fr.Element) curve.G1Affine {
	return func(points []curve.G1Affine, scalars []fr.Element) (sum curve.G1Affine) {
		if _, err := sum.MultiExp(points, scalars, ecc.MultiExpConfig{}); err != nil {
			t.Fatal(err)
		}
		return sum
	}
}

func TestMSMG2(t *testing.T) {
	_, _, _, g := curve.Generators()
	checkMSMs(t, G2, func(logs []fr.Element) []curve.G2Affine {
		return curve.BatchScalarMultiplicationG2(&g, logs)
	}, multiExpG2(t), sizes(9))
}

func multiExpG2(t *testing.T) func([]curve.G2Affine, []fr.Element) curve.G2Affine {
	return func(points []curve.G2Affine, scalars []fr.Element) (sum curve.G2Affine) {
		if _, err := sum.MultiExp(points, scalars, ecc.MultiExpConfig{}); err != nil {
			t.Fatal(err)
		}
		return sum
	}
}

// TestFixedBase compares multiples of one point.
func TestFixedBase(t *testing.T) {
	r := testRand(t)
	c := newContext(t, Config{})
	scalars := randomFrs(r, 300)
	for i := range 40 {
		scalars[i] = edgeScalar(r)
	}
	_, _, g1, g2 := curve.Generators()
	out := make([]curve.G1Affine, len(scalars))
	if err := FixedBase(c, G1, &g1, scalars, out); err != nil {
		t.Fatal(err)
	}
	for i, want := range curve.BatchScalarMultiplicationG1(&g1, scalars) {
		if out[i] != want {
			t.Fatalf("G1: multiple %d of %v is %v, want %v", i, scalars[i], out[i], want)
		}
	}
	out2 := make([]curve.G2Affine, len(scalars))
	if err := FixedBase(c, G2, &g2, scalars, out2); err != nil {
		t.Fatal(err)
	}
	for i, want := range curve.BatchScalarMultiplicationG2(&g2, scalars) {
		if out2[i] != want {
			t.Fatalf("G2: multiple %d of %v is %v, want %v", i, scalars[i], out2[i], want)
		}
	}
}
