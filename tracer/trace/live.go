package trace

// openJournal reads an unsealed trace from its journal, as far as it has got. m is nil where the
// manifest is missing. Of a living writer, what it wrote after the reading began is left out, so
// that one cut goes through all its writers.
func openJournal(dir string, m *Manifest) (*Trace, error) {
	d, err := loadJournal(dir, m)
	if now := sealedNow(dir); now != nil { // the journal was going while it was read, whatever that gave
		return openSealed(dir, now)
	}
	if err != nil {
		return nil, err
	}
	return &Trace{Dir: dir, Manifest: d.Manifest, Live: true, data: d}, nil
}

func loadJournal(dir string, m *Manifest) (*Data, error) {
	in, err := readJournals(dir)
	if err != nil {
		return nil, err
	}
	defer in.close()
	d := new(Data)
	d.Manifest, _, err = convertAll(m, in, dataSink{d})
	return d, err
}

// sealedNow reads the manifest again: nil unless it is a sealed trace's. The journal goes after such a manifest has
// come, so that who finds no journal, or half of one, finds that.
func sealedNow(dir string) *Manifest {
	m, err := ReadManifest(dir)
	if err != nil || m.SealedBy == "" {
		return nil
	}
	return m
}
