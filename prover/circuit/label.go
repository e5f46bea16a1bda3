package circuit

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	nativeposeidon2 "github.com/consensys/gnark-crypto/ecc/bls12-381/fr/poseidon2"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/std/permutation/poseidon2"
)

// Measured constraints of the label circuit; a test holds them against compiled systems.
const (
	labelFirstConstraints = 25794 // the first block, whose state is constants
	labelBlockConstraints = 27008 // each further block
	labelLevelConstraints = 188   // a Merkle level with its selection bit
	labelFixedConstraints = 187   // the leaf and the check of the root
)

const (
	labelMinLogSize  = 15
	labelMinLevels   = 30
	wordsPerParent   = 8 // a parent is 32 bytes
	poseidonWidth    = 2
	poseidonFull     = 6
	poseidonPartials = 50
)

// labelShape proves knowledge of parents whose SHA-256 label is, as a Poseidon2 leaf, in the Merkle
// tree under the public Root. The message is 2k-1 parents of 32 bytes, so that it takes k
// compressions with the padding.
type labelShape struct {
	Root     frontend.Variable   `gnark:",public"`
	Parents  []frontend.Variable // big-endian 32-bit words
	Siblings []frontend.Variable
	Sides    []frontend.Variable // 1 where the path's node is the right child
}

// Define implements frontend.Circuit.
func (c *labelShape) Define(api frontend.API) error {
	hash, err := poseidon2.NewPoseidon2FromParameters(api, poseidonWidth, poseidonFull, poseidonPartials)
	if err != nil {
		return err
	}
	g := sha256Gadget{api: api}
	label := c.label(g)
	low, high := packDigest(g, label)
	node := hash.Compress(low, high)
	for i, sibling := range c.Siblings {
		api.AssertIsBoolean(c.Sides[i])
		move := api.Mul(c.Sides[i], api.Sub(sibling, node))
		left, right := api.Add(node, move), api.Sub(sibling, move)
		node = hash.Compress(left, right)
	}
	api.AssertIsEqual(node, c.Root)
	return nil
}

// label is the SHA-256 digest of all parents.
func (c *labelShape) label(g sha256Gadget) [8]word {
	words := make([]word, 0, len(c.Parents)+8)
	for _, v := range c.Parents {
		words = append(words, g.word(v))
	}
	for _, v := range paddingWords(len(c.Parents)) {
		words = append(words, constWord(v))
	}
	var state [8]word
	for i, v := range sha256IV {
		state[i] = constWord(v)
	}
	for ; len(words) > 0; words = words[16:] {
		state = g.compress(state, [16]word(words))
	}
	return state
}

// paddingWords completes a message of an odd number of parents, n words: 0x80, zeros, the length in
// bits.
func paddingWords(n int) [8]uint32 {
	bitLen := uint64(n) * 32
	return [8]uint32{0: 0x80000000, 6: uint32(bitLen >> 32), 7: uint32(bitLen)}
}

// packDigest gives a digest as two field elements, its first and its last 128 bits as big-endian
// integers.
func packDigest(g sha256Gadget, d [8]word) (first, last frontend.Variable) {
	half := func(ws []word) frontend.Variable {
		v := frontend.Variable(0)
		for _, w := range ws {
			v = g.api.Add(g.api.Mul(v, uint64(1)<<32), g.value(w))
		}
		return v
	}
	return half(d[:4]), half(d[4:])
}

type labelCircuit struct {
	logSize, blocks, levels int
}

func newLabel(logSize int) (*labelCircuit, error) {
	if logSize < labelMinLogSize {
		return nil, fmt.Errorf("circuit label: log_size %d is too small for one SHA-256 compression and a path, "+
			"the smallest is %d", logSize, labelMinLogSize)
	}
	c := &labelCircuit{logSize: logSize, blocks: 1, levels: labelMinLevels}
	spare := 1<<logSize - labelConstraints(c.blocks, c.levels)
	c.blocks += spare / labelBlockConstraints
	spare = 1<<logSize - labelConstraints(c.blocks, c.levels)
	c.levels += spare / labelLevelConstraints
	return c, nil
}

// labelConstraints is the size of the compiled circuit.
func labelConstraints(blocks, levels int) int {
	return labelFirstConstraints + (blocks-1)*labelBlockConstraints +
		levels*labelLevelConstraints + labelFixedConstraints
}

func (c *labelCircuit) Name() string { return Label }
func (c *labelCircuit) LogSize() int { return c.logSize }

func (c *labelCircuit) Shape() frontend.Circuit {
	return &labelShape{
		Parents:  make([]frontend.Variable, (2*c.blocks-1)*wordsPerParent),
		Siblings: make([]frontend.Variable, c.levels),
		Sides:    make([]frontend.Variable, c.levels),
	}
}

func (c *labelCircuit) Assign(p Partition) (frontend.Circuit, error) {
	stream := newStream(Label, p)
	a := c.Shape().(*labelShape)
	message := make([]byte, 0, 4*len(a.Parents))
	for i := range a.Parents {
		w := stream.word()
		a.Parents[i] = w
		message = binary.BigEndian.AppendUint32(message, w)
	}
	label := sha256.Sum256(message)
	root, err := a.fillPath(stream, label)
	if err != nil {
		return nil, err
	}
	a.Root = spoil(root, p.Bad)
	return a, nil
}

// fillPath draws a path to a root above label and returns the root.
func (c *labelShape) fillPath(stream *stream, label [32]byte) (fr.Element, error) {
	hash := nativeposeidon2.NewPermutation(poseidonWidth, poseidonFull, poseidonPartials)
	var first, last, sibling fr.Element
	first.SetBytes(label[:16])
	last.SetBytes(label[16:])
	node, err := compress(hash, first, last)
	for i := 0; i < len(c.Siblings) && err == nil; i++ {
		sibling = stream.element()
		side := stream.bit()
		c.Siblings[i], c.Sides[i] = sibling, side
		if side == 1 {
			node, err = compress(hash, sibling, node)
		} else {
			node, err = compress(hash, node, sibling)
		}
	}
	return node, err
}

func compress(hash *nativeposeidon2.Permutation, left, right fr.Element) (fr.Element, error) {
	l, r := left.Bytes(), right.Bytes()
	digest, err := hash.Compress(l[:], r[:])
	if err != nil {
		return fr.Element{}, fmt.Errorf("hash two nodes: %w", err)
	}
	var e fr.Element
	e.SetBytes(digest)
	return e, nil
}
