//go:build cgo && linux

package device

import (
	"math/rand/v2"
	"testing"

	curve "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// fieldSize is how many values a field test takes: 1e6 where sizes are large.
func fieldSize() int {
	if large() {
		return 1_000_000
	}
	return 5_000
}

// arithmetic is what the test needs of gnark-crypto's element types.
type arithmetic[T any] interface {
	*T
	Add(a, b *T) *T
	Sub(a, b *T) *T
	Mul(a, b *T) *T
	Square(a *T) *T
	Neg(a *T) *T
	Inverse(a *T) *T
	SetOne() *T
}

// mixed are random values among which every edge value meets every other.
func mixed[T any, P arithmetic[T]](n int, random func() T) (a, b []T) {
	var zero, one, minusOne, two T
	P(&one).SetOne()
	P(&minusOne).Neg(&one)
	P(&two).Add(&one, &one)
	var half T
	P(&half).Inverse(&two)
	edges := []T{zero, one, minusOne, two, half, random()}
	a, b = make([]T, n), make([]T, n)
	for i := range a {
		a[i], b[i] = random(), random()
		if i < len(edges)*len(edges) {
			a[i], b[i] = edges[i/len(edges)], edges[i%len(edges)]
		}
	}
	return a, b
}

// checkField compares every operation that all fields have.
func checkField[T comparable, P arithmetic[T]](t *testing.T, field int, random func() T) {
	c := newContext(t, Config{})
	a, b := mixed[T, P](fieldSize(), random)
	for _, op := range []struct {
		name  string
		op    int
		apply func(out, a, b *T)
	}{
		{"add", OpAdd, func(out, a, b *T) { P(out).Add(a, b) }},
		{"sub", OpSub, func(out, a, b *T) { P(out).Sub(a, b) }},
		{"mul", OpMul, func(out, a, b *T) { P(out).Mul(a, b) }},
		{"square", OpSquare, func(out, a, _ *T) { P(out).Square(a) }},
		{"neg", OpNeg, func(out, a, _ *T) { P(out).Neg(a) }},
		{"inverse", OpInverse, func(out, a, _ *T) { P(out).Inverse(a) }},
	} {
		out := make([]T, len(a))
		if err := Field(c, field, op.op, a, b, out); err != nil {
			t.Fatalf("%s: %v", op.name, err)
		}
		i := firstWrong(len(out), func(i int) bool {
			var want T
			op.apply(&want, &a[i], &b[i])
			return out[i] == want
		})
		if i >= 0 {
			t.Fatalf("%s: value %d is %v of %v and %v: wrong", op.name, i, out[i], a[i], b[i])
		}
	}
	if err := Field(c, field, OpMul, a[:0], b[:0], a[:0]); err != nil {
		t.Errorf("nothing to compute: %v", err)
	}
}

// firstWrong is the least number below n that is not right, or -1. Parts are looked at side by side.
func firstWrong(n int, right func(i int) bool) int {
	const part = 1 << 12
	wrong := make([]int, (n+part-1)/part)
	inRows(n, part, func(row, from, to int) {
		for wrong[row] = from; wrong[row] < to && right(wrong[row]); wrong[row]++ {
		}
		if wrong[row] == to {
			wrong[row] = -1
		}
	})
	for _, i := range wrong {
		if i >= 0 {
			return i
		}
	}
	return -1
}

func randomFp(r *rand.Rand) (e fp.Element) {
	var b [64]byte
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	e.SetBytes(b[:])
	return e
}

func TestFieldFr(t *testing.T) {
	r := testRand(t)
	checkField[fr.Element](t, FieldFr, func() fr.Element { return randomFr(r) })
}

func TestFieldFp(t *testing.T) {
	r := testRand(t)
	checkField[fp.Element](t, FieldFp, func() fp.Element { return randomFp(r) })
}

func TestFieldFp2(t *testing.T) {
	r := testRand(t)
	checkField[curve.E2](t, FieldFp2, func() curve.E2 { return curve.E2{A0: randomFp(r), A1: randomFp(r)} })
}

// TestMontgomery: to and from Montgomery form.
func TestMontgomery(t *testing.T) {
	r := testRand(t)
	c := newContext(t, Config{})
	a, _ := mixed[fr.Element](fieldSize(), func() fr.Element { return randomFr(r) })
	plain, back := make([]fr.Element, len(a)), make([]fr.Element, len(a))
	if err := Field(c, FieldFr, OpFromMont, a, nil, plain); err != nil {
		t.Fatal(err)
	}
	if err := Field(c, FieldFr, OpToMont, plain, nil, back); err != nil {
		t.Fatal(err)
	}
	for i := range a {
		if want := a[i].Bits(); [4]uint64(plain[i]) != want || back[i] != a[i] {
			t.Fatalf("value %d: %x and back %x of %x, want %x", i, plain[i], back[i], a[i], want)
		}
	}
}

// TestPoints compares the points' operations, equal, opposite and infinite points among them.
func TestPoints(t *testing.T) {
	t.Run("G1", func(t *testing.T) {
		checkPoints(t, G1, testG1(t, 200), func(a, b *curve.G1Affine) (add, sub, double, neg curve.G1Affine) {
			add.Add(a, b)
			sub.Sub(a, b)
			double.Double(a)
			neg.Neg(a)
			return
		})
	})
	t.Run("G2", func(t *testing.T) {
		checkPoints(t, G2, testG2(t, 100), func(a, b *curve.G2Affine) (add, sub, double, neg curve.G2Affine) {
			add.Add(a, b)
			sub.Sub(a, b)
			double.Double(a)
			neg.Neg(a)
			return
		})
	})
}

func checkPoints[P comparable](t *testing.T, group int, points []P, oracle func(a, b *P) (add, sub, double, neg P)) {
	c := newContext(t, Config{})
	n := len(points)
	var a, b []P
	var zero P
	_, _, _, opposite := oracle(&points[0], &points[0])
	edges := []P{zero, points[0], points[0], opposite, points[1]}
	for _, x := range edges {
		for _, y := range edges {
			a, b = append(a, x), append(b, y)
		}
	}
	for i := range points {
		a, b = append(a, points[i]), append(b, points[(i*7+1)%n])
	}
	results := map[int][]P{}
	for _, op := range []int{PointAdd, PointSub, PointDouble, PointNeg} {
		results[op] = make([]P, len(a))
		if err := Points(c, group, op, a, b, results[op]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range a {
		add, sub, double, neg := oracle(&a[i], &b[i])
		got := [4]P{results[PointAdd][i], results[PointSub][i], results[PointDouble][i], results[PointNeg][i]}
		if got != [4]P{add, sub, double, neg} {
			t.Fatalf("pair %d: %v and %v give %v", i, a[i], b[i], got)
		}
	}
}
