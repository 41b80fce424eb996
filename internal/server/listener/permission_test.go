package listener

import "testing"

// A question has one answer, also when a button answers it before the id of its message is known.
func TestPermissionIsAnsweredOnce(t *testing.T) {
	for _, early := range []bool{true, false} {
		var p permissions
		answer := make(chan verdict, 1)
		p.begin("q", answer)
		if early && !p.answer("q", allowOnce) {
			t.Error("the button is not taken")
		}
		p.sent("q", "m")
		if first := p.answer("m", deny); first == early {
			t.Errorf("a reaction is the first answer: %t", first)
		}
		if want := map[bool]verdict{true: allowOnce, false: deny}[early]; <-answer != want {
			t.Errorf("the answer is not %s", want)
		}
		if p.answer("q", deny) || p.answer("m", deny) {
			t.Error("it is answered twice")
		}
	}
}
