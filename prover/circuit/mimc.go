package circuit

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	nativemimc "github.com/consensys/gnark-crypto/ecc/bls12-381/fr/mimc"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/std/hash/mimc"
)

const (
	mimcLinkConstraints = 334 // measured; a test holds it against compiled systems
	mimcMinLogSize      = 10
)

// mimcShape proves knowledge of the links of a MiMC chain that ends in the public Root. States are
// the chain's values between links: asserting them keeps linear expressions short, which would
// otherwise take in every link before.
type mimcShape struct {
	Root   frontend.Variable `gnark:",public"`
	Links  []frontend.Variable
	States []frontend.Variable // after each link but the last
}

// Define implements frontend.Circuit.
func (c *mimcShape) Define(api frontend.API) error {
	h, err := mimc.NewMiMC(api)
	if err != nil {
		return err
	}
	state := frontend.Variable(0)
	for i, link := range c.Links {
		if err := h.SetState([]frontend.Variable{state}); err != nil {
			return fmt.Errorf("set state before link %d: %w", i, err)
		}
		h.Write(link)
		state = c.Root
		if i < len(c.States) {
			state = c.States[i]
		}
		api.AssertIsEqual(h.Sum(), state)
	}
	return nil
}

type mimcCircuit struct {
	logSize, links int
}

func newMiMC(logSize int) (*mimcCircuit, error) {
	if logSize < mimcMinLogSize {
		return nil, fmt.Errorf("circuit mimc: log_size %d is too small, the smallest is %d",
			logSize, mimcMinLogSize)
	}
	return &mimcCircuit{logSize: logSize, links: (1 << logSize) / mimcLinkConstraints}, nil
}

func (c *mimcCircuit) Name() string { return MiMC }
func (c *mimcCircuit) LogSize() int { return c.logSize }

func (c *mimcCircuit) Shape() frontend.Circuit {
	return &mimcShape{
		Links:  make([]frontend.Variable, c.links),
		States: make([]frontend.Variable, c.links-1),
	}
}

func (c *mimcCircuit) Assign(p Partition) (frontend.Circuit, error) {
	stream := newStream(MiMC, p)
	h := nativemimc.NewMiMC()
	a := c.Shape().(*mimcShape)
	for i := range a.Links {
		link := stream.element()
		a.Links[i] = link
		b := link.Bytes()
		if _, err := h.Write(b[:]); err != nil {
			return nil, fmt.Errorf("hash link %d: %w", i, err)
		}
		var state fr.Element
		state.SetBytes(h.Sum(nil))
		if i < len(a.States) {
			a.States[i] = state
		} else {
			a.Root = spoil(state, p.Bad)
		}
	}
	return a, nil
}
