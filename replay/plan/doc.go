// Package plan says which settings are safe before anybody deploys them: it asks one predictor
// (package replay) about every combination of some settings and holds each predicted peak against a
// memory limit.
//
// Terms: the limit is the machine's memory less what is reserved for the rest of it. A setting is
//
//   - safe if P(peak > limit) is below 1 % by the model and the traces support the setting;
//   - unsafe if the traces support it and P is 1 % or more;
//   - unknown outside what the traces support, whatever the model says;
//   - refused where the model cannot run it at all (a budget that no partition fits, a deadlock).
//
// The recommended setting is the safe one with the shortest proof interval, of several that equal it
// to 0.5 % the one with the lowest peak; the cheapest is that of those within 2 % of the shortest.
// The next one up is the recommended setting with the next values of the first axis until one is
// not safe.
package plan
