// SPDX-License-Identifier: Apache-2.0
// Package statusutil is in place of the Collector's internal module of this name, which module proxies may lack.
package statusutil

import (
	"net/http"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// NewStatusFromMsgAndHTTPCode gives the status that a gRPC server would have for this answer.
func NewStatusFromMsgAndHTTPCode(text string, code int) *status.Status {
	c := codes.Unknown
	switch code {
	case http.StatusBadRequest:
		c = codes.InvalidArgument
	case http.StatusTooManyRequests:
		c = codes.ResourceExhausted
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		c = codes.Unavailable
	}
	return status.New(c, text)
}

// GetRetryInfo finds when the client may try again.
func GetRetryInfo(s *status.Status) *errdetails.RetryInfo {
	for _, d := range s.Details() {
		if r, ok := d.(*errdetails.RetryInfo); ok {
			return r
		}
	}
	return nil
}
