package probe

import (
	"errors"
	"fmt"
	"os"
	"runtime/metrics"
	"slices"

	"golang.org/x/sys/unix"
)

// readers holds every open file with what to look for in it. One goroutine at a time.
type readers struct {
	open    []reader
	last    reading
	buf     []byte
	rusage  unix.Rusage
	runtime []metrics.Sample
	why     []string     // by row of the table, why it has no reader
	at      map[file]int // index in open
	paced   uint64       // what the fixed computation gave, which keeps it from being left out
}

// reader is one kept-open file, or a call (fd -1).
type reader struct {
	file    file
	fd      int
	wants   []want
	handle  *os.File
	err     error // of the latest read
	wasRead bool
}

// bufBytes is more than any of the files but /proc/stat, of which only the first line is wanted.
const bufBytes = 32 << 10

// openReaders opens, for each row of the table, the first of its places that gives a value now, or else the first
// that exists: a limit may be set later.
func openReaders(opts Options) *readers {
	s := &readers{
		last: newReading(len(table)), buf: make([]byte, bufBytes),
		runtime: runtimeSamples(), why: make([]string, len(table)),
		at: map[file]int{},
	}
	dirs := folders(opts)
	for i, r := range table {
		if p, ok := s.choose(i, r.places, dirs, opts.own()); ok {
			rd := &s.open[s.at[p.file]]
			rd.wants = append(rd.wants, p.want(i))
		}
	}
	return s
}

// choose opens row i's places until one gives a value.
func (s *readers) choose(i int, places []place, dirs [dirCount]string, own bool) (chosen place, ok bool) {
	for _, p := range places {
		if err := s.openFile(p.file, dirs, own); err != nil {
			s.why[i] = err.Error()
			continue
		}
		if s.finds(s.open[s.at[p.file]], p.want(i)) {
			return p, true
		}
		if !ok {
			chosen, ok = p, true
		}
	}
	return chosen, ok
}

// finds says whether the file gives the wanted figure now.
func (s *readers) finds(rd reader, w want) bool {
	rd.wants = []want{w}
	s.last.ok[w.index] = false
	s.readOne(&rd)
	return s.last.ok[w.index]
}

func (p place) want(index int) want {
	scale := p.scale
	switch scale {
	case 0:
		scale = 1
	case pages:
		scale = float64(os.Getpagesize())
	}
	return want{[]byte(p.key), p.column, scale, index}
}

var (
	errOtherProcess = errors.New("only known of the process that samples itself")
	errNoFolder     = errors.New("no such cgroup")
)

// openFile makes sure f is open and s.at[f] its index.
func (s *readers) openFile(f file, dirs [dirCount]string, own bool) error {
	if _, ok := s.at[f]; ok {
		return nil
	}
	info := files[f]
	rd := reader{file: f, fd: -1}
	if info.dir == dirNone && !own {
		return fmt.Errorf("%s: %w", info.doc, errOtherProcess)
	}
	if info.dir != dirNone {
		h, err := openFirst(paths(dirs, info))
		if errors.Is(err, errNoFolder) {
			return fmt.Errorf("%s: %w", info.doc, err)
		}
		if err != nil {
			return err
		}
		rd.handle, rd.fd = h, int(h.Fd())
	}
	s.at[f] = len(s.open)
	s.open = append(s.open, rd)
	return nil
}

func openFirst(names []string) (h *os.File, err error) {
	err = errNoFolder
	for _, name := range names {
		if h, err = os.Open(name); err == nil {
			return h, nil
		}
	}
	return nil, err
}

// read makes one reading and hands it to sink. It returns how many files failed that could be read before.
func (s *readers) read(slow bool, sink Sink) (failed int64) {
	clear(s.last.ok)
	for i := range s.open {
		rd := &s.open[i]
		if len(rd.wants) == 0 || files[rd.file].slow && !slow {
			continue
		}
		s.readOne(rd)
		if rd.err != nil && rd.wasRead {
			failed++
		}
		rd.wasRead = rd.wasRead || rd.err == nil
	}
	for i := range table {
		if s.last.ok[i] {
			sink.Sample(table[i].Name, s.last.value[i])
		}
	}
	return failed
}

func (s *readers) readOne(rd *reader) {
	switch f := files[rd.file].format; f {
	case rusage:
		rd.err = s.readRusage(rd.wants)
	case gometrics:
		s.readRuntime(rd.wants)
	case fixedWork:
		s.readPace(rd.wants)
	default:
		var n int
		n, rd.err = pread(rd.fd, s.buf, f != cpuLine)
		s.last.parse(s.buf[:n], f, rd.wants)
	}
}

// chunkBytes is less than a page less a line: a read of procfs that gives fewer bytes was the last.
// Larger files come a page at a time.
const chunkBytes = 3 << 10

// pread reads a file from its start, which makes procfs and cgroupfs write it anew. With whole it goes on past
// the first page.
func pread(fd int, buf []byte, whole bool) (n int, err error) {
	for n < len(buf) {
		got, err := unix.Pread(fd, buf[n:], int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return n, err
		}
		n += got
		if got < chunkBytes || !whole {
			break
		}
	}
	return n, nil
}

// readRusage fills the process's own faults, CPU time and switches, to the microsecond.
func (s *readers) readRusage(wants []want) error {
	if err := unix.Getrusage(unix.RUSAGE_SELF, &s.rusage); err != nil {
		return err
	}
	u := &s.rusage
	for i := range wants {
		w := &wants[i]
		switch string(w.key) {
		case "minflt":
			s.last.set(w, uint64(u.Minflt))
		case "majflt":
			s.last.set(w, uint64(u.Majflt))
		case "nvcsw":
			s.last.set(w, uint64(u.Nvcsw))
		case "nivcsw":
			s.last.set(w, uint64(u.Nivcsw))
		case "utime":
			s.last.setSeconds(w, u.Utime.Nano())
		case "stime":
			s.last.setSeconds(w, u.Stime.Nano())
		}
	}
	return nil
}

func (r *reading) setSeconds(w *want, nanos int64) {
	r.value[w.index] = float64(nanos) * nano
	r.ok[w.index] = true
}

// Keys of the Go runtime's figures, in the order of runtimeSamples.
var runtimeKeys = []struct{ key, name string }{
	{"total", "/memory/classes/total:bytes"},
	{"released", "/memory/classes/heap/released:bytes"},
	{"live", "/gc/heap/live:bytes"},
	{"objects", "/memory/classes/heap/objects:bytes"},
	{"free", "/memory/classes/heap/free:bytes"},
	{"goal", "/gc/heap/goal:bytes"},
	{"cycles", "/gc/cycles/total:gc-cycles"},
	{"goroutines", "/sched/goroutines:goroutines"},
}

func runtimeSamples() []metrics.Sample {
	s := make([]metrics.Sample, len(runtimeKeys))
	for i, k := range runtimeKeys {
		s[i].Name = k.name
	}
	return s
}

// readRuntime reads runtime/metrics, which neither stops the world nor allocates for plain numbers. A Go version
// without one of them leaves it out.
func (s *readers) readRuntime(wants []want) {
	metrics.Read(s.runtime)
	for i := range wants {
		w := &wants[i]
		if string(w.key) == "used" {
			s.setUsed(w)
		}
		for k := range runtimeKeys {
			if v := s.runtime[k].Value; runtimeKeys[k].key == string(w.key) && v.Kind() == metrics.KindUint64 {
				s.last.set(w, v.Uint64())
			}
		}
	}
}

// setUsed sets total less released.
func (s *readers) setUsed(w *want) {
	total, released := s.runtime[0].Value, s.runtime[1].Value
	if total.Kind() == metrics.KindUint64 && released.Kind() == metrics.KindUint64 {
		s.last.set(w, total.Uint64()-released.Uint64())
	}
}

// absences says which rows the latest reading found no value for, and why.
func (s *readers) absences() []Absence {
	why := slices.Clone(s.why)
	for _, rd := range s.open {
		for _, w := range rd.wants {
			why[w.index] = ""
			switch {
			case rd.err != nil:
				why[w.index] = fmt.Sprintf("read %s: %v", files[rd.file].doc, rd.err)
			case !s.last.ok[w.index]:
				why[w.index] = files[rd.file].doc + " has no such value"
			}
		}
	}
	var list []Absence
	for i := range table {
		if why[i] != "" {
			list = append(list, Absence{table[i].Name, why[i]})
		}
	}
	return list
}

func (s *readers) close() {
	for _, rd := range s.open {
		if rd.handle != nil {
			rd.handle.Close()
		}
	}
}
