package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/BurntSushi/toml"

	"highwater/internal/regular"
)

// MaxFileBytes is the largest model file that is read.
const MaxFileBytes = 64 << 20

// Parse reads a model from TOML: unknown keys, wrong types and an invalid model are errors that say
// where.
func Parse(text string) (*Model, error) {
	if len(text) > MaxFileBytes {
		return nil, fmt.Errorf("read model: %d bytes is more than the %d allowed", len(text),
			MaxFileBytes)
	}
	m := &Model{}
	meta, err := toml.Decode(text, m)
	var perr toml.ParseError
	if errors.As(err, &perr) {
		return nil, fmt.Errorf("read model: line %d: %s", perr.Position.Line, perr.Message)
	}
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	if extra := meta.Undecoded(); len(extra) > 0 {
		return nil, fmt.Errorf("read model: unknown key %q", extra[0].String())
	}
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	return m, nil
}

// ReadFile reads the model file path.
func ReadFile(path string) (*Model, error) {
	f, _, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	m, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Format writes m as TOML: Parse(Format(m)) is m.
func Format(m *Model) (string, error) {
	var b bytes.Buffer
	enc := toml.NewEncoder(&b)
	enc.Indent = ""
	if err := enc.Encode(m); err != nil {
		return "", fmt.Errorf("write model: %w", err)
	}
	return b.String(), nil
}
