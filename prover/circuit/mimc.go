package circuit

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	nativemimc "github.com/consensys/gnark-crypto/ecc/bls12-381/fr/mimc"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/std/hash/mimc"
)

// Measured constraints of the MiMC chain: a link, and the check of the result.
const (
	mimcLinkConstraints  = 333
	mimcFixedConstraints = 1
	mimcMinLogSize       = 10
)

// mimcShape proves knowledge of the links of a MiMC chain that ends in the public Root.
type mimcShape struct {
	Root  frontend.Variable `gnark:",public"`
	Links []frontend.Variable
}

// Define implements frontend.Circuit.
func (c *mimcShape) Define(api frontend.API) error {
	h, err := mimc.NewMiMC(api)
	if err != nil {
		return err
	}
	h.Write(c.Links...)
	api.AssertIsEqual(h.Sum(), c.Root)
	return nil
}

type mimcCircuit struct {
	logSize, links int
}

func newMiMC(logSize int) (*mimcCircuit, error) {
	if logSize < mimcMinLogSize {
		return nil, fmt.Errorf("circuit mimc: log_size %d is too small, the smallest is %d", logSize, mimcMinLogSize)
	}
	return &mimcCircuit{logSize: logSize, links: (1<<logSize - mimcFixedConstraints) / mimcLinkConstraints}, nil
}

func (c *mimcCircuit) Name() string { return MiMC }
func (c *mimcCircuit) LogSize() int { return c.logSize }

func (c *mimcCircuit) Shape() frontend.Circuit {
	return &mimcShape{Links: make([]frontend.Variable, c.links)}
}

func (c *mimcCircuit) Assign(p Partition) (frontend.Circuit, error) {
	stream := newStream(MiMC, p)
	h := nativemimc.NewMiMC()
	links := make([]frontend.Variable, c.links)
	for i := range links {
		link := stream.element()
		links[i] = link
		b := link.Bytes()
		if _, err := h.Write(b[:]); err != nil {
			return nil, fmt.Errorf("hash link %d: %w", i, err)
		}
	}
	var root fr.Element
	root.SetBytes(h.Sum(nil))
	return &mimcShape{Root: spoil(root, p.Bad), Links: links}, nil
}
