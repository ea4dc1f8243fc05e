package main

import "testing"

func TestOnlyWhatClientsSendIsCounted(t *testing.T) {
	t.Parallel()
	info := "# Commandstats\r\n" +
		"cmdstat_set:calls=10,usec=5,usec_per_call=0.50,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_evalsha:calls=7,usec=5,usec_per_call=0.50\r\n" +
		"cmdstat_client|tracking:calls=2,usec=5\r\n" +
		"cmdstat_client|setinfo:calls=1,usec=5\r\n" +
		"cmdstat_config|resetstat:calls=1,usec=5\r\n"
	c := commandCount{}
	for range 2 { // two nodes
		if err := c.parse(info); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.sent(nil); got != 20 {
		t.Errorf("%d commands, want 20: SET is what the script called, CONFIG is ours", got)
	}
	if got := c.sent([]string{"set"}); got != 40 {
		t.Errorf("%d commands, want 40 of a library that sends SET itself", got)
	}
}

func TestAnAnswerThatIsNoStatisticIsAnError(t *testing.T) {
	t.Parallel()
	if err := (commandCount{}).parse("cmdstat_set:calls=many\r\n"); err == nil {
		t.Error("no error")
	}
}
