package sqlserver_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlserver"
)

func TestClassify(t *testing.T) {
	d := sqlserver.Dialect{}
	for failure, numbers := range map[sqladapter.Failure][]int32{
		sqladapter.Busy:         {1205, 1222, 3960, 10928, 10929, 40501, 49918, 49919, 49920},
		sqladapter.Lost:         {926, 4060, 4221, 40197, 40613, 6005, 233, 10053, 10054, 10060},
		sqladapter.Denied:       {229, 230, 262, 3906, 18456},
		sqladapter.Duplicate:    {2601, 2627},
		sqladapter.Dangling:     {547},
		sqladapter.Unstorable:   {2628, 8152},
		sqladapter.OtherFailure: {0, 102, 207, 208, 2714, 50000},
	} {
		for _, n := range numbers {
			require.Equal(t, failure, d.Classify(fmt.Errorf("while at it: %w", mssql.Error{Number: n})), n)
		}
	}
	for _, err := range []error{
		driver.ErrBadConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, mssql.ServerError{}, mssql.StreamError{InnerError: errors.New("cut")},
		&net.OpError{Op: "read", Err: syscall.ECONNRESET}, mssql.RetryableError{},
	} {
		require.Equal(t, sqladapter.Lost, d.Classify(fmt.Errorf("while at it: %w", err)), "%T", err)
	}
	for _, err := range []error{nil, context.Canceled, syscall.ENOENT, errors.New("anything")} {
		require.Equal(t, sqladapter.OtherFailure, d.Classify(err))
	}

	require.ErrorIs(t, sqladapter.Explain(d, mssql.Error{Number: 40613}), sqladapter.ErrBusy)
	require.ErrorIs(t, sqladapter.Explain(d, mssql.Error{Number: 229}), sqladapter.ErrDenied)
}
