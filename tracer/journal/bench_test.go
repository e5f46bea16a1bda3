package journal

import (
	"fmt"
	"sync"
	"testing"
)

func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 2, 32} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			j := create(b, Options{})
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for w := range writers {
				n := (b.N + w) / writers
				wg.Go(func() {
					r := Record{Kind: KindQueue, ID: uint32(w)}
					for range n {
						r.TimeNS = j.Now()
						j.Append(&r)
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			if st := j.Stats(); st.Lost != 0 || st.Events != int64(b.N) {
				b.Fatalf("%d of %d events, %d lost: %v", st.Events, b.N, st.Lost, st.LastError)
			}
		})
	}
}
