package trace

import "errors"

// openJournal reads an unsealed trace from its journal. m is nil where the manifest is missing.
func openJournal(dir string, m *Manifest) (*Trace, error) { return nil, errors.New("to be written") }
