folioswap_unit_test(hist_test stats)
folioswap_unit_test(stats_test stats base)
