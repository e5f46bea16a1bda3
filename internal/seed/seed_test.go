package seed

import (
	"flag"
	"os"
	"testing"
)

func TestSeedIsFixed(t *testing.T) {
	want := "1"
	if os.Getenv("RAPID_SEED") != "" {
		t.Logf("RAPID_SEED=%s decides", os.Getenv("RAPID_SEED"))
		want = flag.Lookup("rapid.seed").DefValue
	}
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.seed" })
	if got := flag.Lookup("rapid.seed").Value.String(); !given && got != want {
		t.Errorf("properties draw from seed %s, want %s", got, want)
	}
}
