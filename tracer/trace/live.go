package trace

import (
	"errors"
	"io/fs"
)

// openJournal reads an unsealed trace from its journal, as far as it has got. m is nil where the
// manifest is missing. Of a living writer, what it wrote after the reading began is left out, so
// that one cut goes through all its writers.
func openJournal(dir string, m *Manifest) (*Trace, error) {
	in, err := readJournals(dir)
	if errors.Is(err, fs.ErrNotExist) { // sealed since we looked
		if now, merr := ReadManifest(dir); merr == nil && now.SealedBy != "" {
			return openSealed(dir, now)
		}
	}
	if err != nil {
		return nil, err
	}
	defer in.close()
	d := new(Data)
	if d.Manifest, _, err = convertAll(m, in, dataSink{d}); err != nil {
		return nil, err
	}
	return &Trace{Dir: dir, Manifest: d.Manifest, Live: true, data: d}, nil
}
