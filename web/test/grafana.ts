// What a dashboard of ours may hold: Grafana's own types, made narrower by the kind of panel, so that a misspelt
// option is an error. Grafana publishes no types of a query to Prometheus any more: `Query` is written by hand and has
// what we use.

import type { Dashboard, FieldConfigSource, Panel, RowPanel } from "@grafana/schema";
import type * as Heatmap from "@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen";
import type * as Stat from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type * as Table from "@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen";
import type * as TimeSeries from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";

/** As JSON has it: enumerations are their words. */
type Written<T> = T extends string
  ? `${T}`
  : T extends object
    ? { [Key in keyof T]: Written<T[Key]> }
    : T;

/** Everything but what stands at the top may be left out; Grafana has defaults. */
type Some<T> = T extends object ? { [Key in keyof T]?: Some<T[Key]> } : T;

interface Query {
  refId: string;
  expr: string;
  format?: "table" | "heatmap";
  instant?: true;
  legendFormat?: string;
}

interface Fields<Custom> extends Omit<FieldConfigSource, "defaults"> {
  defaults: Omit<FieldConfigSource["defaults"], "custom"> & { custom?: Some<Custom> };
}

type Kind<Type extends string, Options, Custom> = Omit<
  Panel,
  "type" | "options" | "fieldConfig" | "targets"
> & {
  type: Type;
  id: number;
  title: string;
  gridPos: NonNullable<Panel["gridPos"]>;
  options: Some<Options>;
  fieldConfig?: Fields<Custom>;
  targets: Query[];
};

type AnyPanel =
  | RowPanel
  | Kind<"heatmap", Heatmap.Options, Heatmap.FieldConfig>
  | Kind<"stat", Stat.Options, Record<string, never>>
  | Kind<"table", Table.Options, Table.FieldConfig>
  | Kind<"timeseries", TimeSeries.Options, TimeSeries.FieldConfig>;

export type OurDashboard = Written<
  Omit<Dashboard, "panels"> & { uid: string; title: string; panels: AnyPanel[] }
>;
