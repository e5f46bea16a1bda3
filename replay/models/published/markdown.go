package published

import (
	"fmt"
	"strings"
)

// Markdown is the rows as the table of docs/cuzk-validation.md.
func Markdown(rows []Row) string {
	var b strings.Builder
	b.WriteString("| model | pw | gw | n/j | measured GiB | predicted | 80 % | 95 % | error | inside | rho | " +
		"s/proof measured | predicted | 69+20·pw | its error | time used |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for i := range rows {
		rows[i].line(&b)
	}
	model, formula := Sum(rows)
	fmt.Fprintf(&b, "\nOver the %d rows with partition workers: the model's error is %.1f %% in the mean and "+
		"%.1f %% at worst, the formula's %.1f %% and %.1f %%.\n", counted(rows), 100*model.Mean,
		100*model.Worst, 100*formula.Mean, 100*formula.Worst)
	return b.String()
}

func counted(rows []Row) (n int) {
	for i := range rows {
		if rows[i].FormulaError != nil {
			n++
		}
	}
	return n
}

func (r *Row) line(b *strings.Builder) {
	measured := fmt.Sprintf("%.1f", r.Run.PeakGiB)
	if r.Killed {
		measured = "≥ " + measured
	}
	fmt.Fprintf(b, "| %s | %s | %s | %d/%d | %s | %.0f | %.0f–%.0f | %.0f–%.0f | %+.1f %% | %s | %.2f |",
		strings.TrimPrefix(r.Model, "cuzk/"), dash(r.PartitionWorkers), dash(r.GPUWorkers), r.Jobs,
		r.JobsInFlight, measured, r.PeakGiB, r.Low80, r.High80, r.Low95, r.High95, 100*r.Error,
		yes(r.Inside), r.Rho)
	proof, formula := "– ", "– | –"
	if r.ProofError != nil {
		proof = fmt.Sprintf("%.1f", r.Run.ProofS)
	}
	predicted := fmt.Sprintf("%.1f", r.ProofS)
	if r.ProofError != nil {
		predicted += fmt.Sprintf(" (%+.1f %%)", 100**r.ProofError)
	}
	if r.FormulaError != nil {
		formula = fmt.Sprintf("%.0f | %+.0f %%", *r.FormulaGiB, 100**r.FormulaError)
	}
	fmt.Fprintf(b, " %s | %s | %s | %s |\n", proof, predicted, formula, yes(r.TimingUsed))
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func dash(n int64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprint(n)
}
