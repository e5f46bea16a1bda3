package trace

import "errors"

// Writer writes a sealed trace: rows of the four tables, each in its order, in any interleaving; then Close with the
// manifest. It is for one goroutine. A trace exists once Close has returned nil: the manifest is renamed into place last.
type Writer struct {
	dir string
}

// Create makes the directory dir where it is missing and starts the four tables in it. A directory that already
// holds a trace (a manifest) is refused.
func Create(dir string) (*Writer, error) { return nil, errors.New("trace.Create: to be written") }

// Span adds a row; spans come by BeginSeq. The row is copied.
func (w *Writer) Span(row *Span) error { return errors.New("to be written") }

// Buffer adds a row; buffer events come by Seq. The row is copied.
func (w *Writer) Buffer(row *BufferEvent) error { return errors.New("to be written") }

// Queue adds a row; queue events come by Seq. The row is copied.
func (w *Writer) Queue(row *QueueEvent) error { return errors.New("to be written") }

// Sample adds a row; samples come by time. The row is copied.
func (w *Writer) Sample(row *Sample) error { return errors.New("to be written") }

// Close finishes the tables, makes them durable and writes the manifest by rename.
func (w *Writer) Close(m *Manifest) error { return errors.New("to be written") }

// Abort gives up and removes what was written. After Close it does nothing.
func (w *Writer) Abort() {}

// Write writes a whole trace in memory to the directory dir.
func Write(dir string, d *Data) error { return errors.New("trace.Write: to be written") }
