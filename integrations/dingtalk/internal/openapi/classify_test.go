package openapi

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
)

// TestCodes has a row for every documented code of the two APIs.
func TestCodes(t *testing.T) {
	permanent := []string{
		"invalidParameter.robotCode.empty", "invalidParameter.robotCode.auth",
		"invalidParameter.robotCode.notExsit", "invalidParameter.robotCode.invalid",
		"invalidParameter.robotCode.missing", "invalidParameter.userIds.empty",
		"invalidParameter.userIds.overMax", "invalidParameter.msgKey.invalid",
		"invalidParameter.msgParam.invalid", "invalidParameter.param.invalid",
		"invalidParameter.msg.unsupport", "invalidParameter.msgBody.invalid",
		"miss.param.robotCode", "miss.openConversationId", "invalid.openConversationId",
		"group.disbanded", "resource.not.found", "bot.stopped", "template.stopped",
		"template.not.existed", "resource.unavailable", "send.forbidden",
		"bot.forbidden.sendMessage", "staffId.notExisted", "illegal.receivers",
		"receivers.exceed", "robot.oto.notExist", "chatbotId.notAllow.sendOTO",
		"conversation.org.notMatch", "unauthorized", "auth.error", "token.notExisted",
		"invalidParameter.token.invalid", "keywords.not.match", "sign.not.match",
		"ip.not.match", "contain.unsafe.url", "contain.notAllowed.text",
		"contain.notAllowed.picture", "contain.notAllowed.content",
		"only.groupAdmin.canAtAll", "param.stream.content", "some.new.code",
	}
	for _, code := range permanent {
		require.Equal(t, verdict{next: message.NextNever, code: code},
			classify(word(http.StatusBadRequest, code)), code)
	}
	for code, want := range map[string]verdict{
		"InvalidAuthentication":             {outcome: outcomeBadToken},
		"invalidParameter.msgParam.tooLong": tooLong,
		"session.notExisted":                gone,
		"session.expired":                   gone,
		"send.too.fast":                     wait(time.Minute),
		"send.byToken.tooFast":              wait(time.Minute),
		"too.many.group":                    wait(time.Minute),
		"too.many.people":                   wait(time.Minute),
		"unknown.send.result":               maybe,
		"invalidClientIdOrSecret":           park,
	} {
		if want.code == "" {
			want.code = code
		}
		require.Equal(t, want, classify(word(http.StatusBadRequest, code)), code)
	}
}

func TestForbiddenHasTwoMeanings(t *testing.T) {
	for code, want := range map[string]verdict{
		"QpsLimitForAppkeyAndApi":         wait(time.Second),
		"QpsLimitForApi":                  wait(time.Second),
		"QpsLimitForSuitekeyAndOrgAndApi": wait(time.Second),
		"QpmLimitForAppkeyAndApi":         wait(time.Minute),
		"QpmLimitForSuitekeyAndOrgAndApi": wait(time.Minute),
		"ApiCountLimitForOrg":             park,
		"IpNotInWhiteList":                park,
		"AccessTokenPermissionDenied":     dead,
		"SomethingNew":                    dead,
	} {
		code = "Forbidden.AccessDenied." + code
		want.code = code
		require.Equal(t, want, classify(word(http.StatusForbidden, code)), code)
	}
	require.Equal(t, message.NextWait,
		classify(word(http.StatusForbidden, "QpsLimit.ExceedRealQps")).next)
}

func TestNumbers(t *testing.T) {
	for code, want := range map[string]verdict{
		"-1": again, "40014": badToken, "42001": badToken, "300001": gone,
		"130101": wait(time.Minute), "410100": wait(time.Minute), "302033": wait(time.Minute),
		"34016": tooLong, "460101": tooLong, "500100": maybe, "40089": park,
		"310000": dead, "400105": dead, "40035": dead, "43004": dead, "430101": dead,
		"430104": dead, "400101": dead, "400102": dead, "400106": dead, "400013": dead,
		"33012": dead, "99999": dead,
	} {
		if want.code == "" {
			want.code = code
		}
		for _, form := range []string{`{"errcode":%s}`, `{"errcode":"%s"}`} {
			require.Equal(t, want, classify(body(200, fmt.Sprintf(form, code))), code)
		}
	}
	require.Equal(t, time.Second, classify(body(200, `{"errcode":88,"sub_code":"90002"}`)).after)
	require.Equal(t, message.NextPark, classify(body(200, `{"errcode":88,"sub_code":"90020"}`)).next)
	require.Equal(t, outcomeBadToken, classify(body(200, `{"errcode":"42001"}`)).outcome)
}

func TestStatusesWithoutACode(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   verdict
	}{
		{302, "", verdict{code: codeRedirect}},
		{400, `{}`, verdict{next: message.NextNever, code: "http_400"}},
		{401, `x`, verdict{outcome: outcomeBadToken, code: "http_401"}},
		{404, "<html>", verdict{next: message.NextNever, code: "http_404"}},
		{403, "<html>", verdict{next: message.NextWait, after: 5 * time.Minute, code: codeHTML}},
		{408, "", verdict{landed: message.LandedMaybe, code: "http_408"}},
		{413, "<html>", tooLong},
		{429, "", verdict{next: message.NextWait, after: time.Minute, code: "http_429"}},
		{500, "", verdict{landed: message.LandedMaybe, code: "http_500"}},
		{502, "<html>", verdict{landed: message.LandedMaybe, code: "http_502"}},
		{503, "Service Unavailable", verdict{code: "http_503"}},
		{504, "<html>", verdict{landed: message.LandedMaybe, code: "http_504"}},
		{200, "<html>", verdict{next: message.NextWait, after: 5 * time.Minute, code: codeHTML}},
		{200, "taken", verdict{landed: message.LandedMaybe, code: codeOdd}},
		{200, "", verdict{outcome: outcomeSent, warning: "the answer was empty"}},
		{
			200, `{"status":1111,"wait":7,"punish":"deny"}`,
			verdict{next: message.NextWait, after: 7 * time.Minute, code: codePunished},
		},
		{
			200, `{"processQueryKey":"k","flowControlledStaffIdList":["a"]}`,
			verdict{next: message.NextWait, after: time.Minute, code: codeSlowUser},
		},
		{
			200, `{"processQueryKey":"k","filteredStaffIdList":["a"]}`,
			verdict{next: message.NextNever, code: codeFilteredUser},
		},
		{
			400, `{"code":"bad\nword"}`,
			verdict{next: message.NextNever, code: "http_400"},
		},
	} {
		require.Equal(t, c.want, classify(body(c.status, c.body)), "%d %s", c.status, c.body)
	}
}

func TestRetryAfterLengthensAWait(t *testing.T) {
	a := decode(http.StatusTooManyRequests, http.Header{"Retry-After": {"7"}}, nil, time.Time{})
	require.Equal(t, 7*time.Second, classify(a).after)
	a = decode(http.StatusServiceUnavailable, http.Header{"Retry-After": {"30"}}, nil, time.Time{})
	want := verdict{next: message.NextWait, after: 30 * time.Second, code: "http_503"}
	require.Equal(t, want, classify(a))
}

func word(status int, code string) *answer {
	return body(status, fmt.Sprintf(`{"code":%q,"requestid":"r-1","message":"x"}`, code))
}

func body(status int, s string) *answer {
	return decode(status, http.Header{}, []byte(s), time.Time{})
}
